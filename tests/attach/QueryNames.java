package sluicegate.attach;

/** Starts queries as the driver's threads do, in orders that are rare, and prints how they are named and remembered. */
public final class QueryNames {
  public static void main(String[] none) {
    Queries anew = new Queries();
    anew.started("11111111-a", "run-1", "clicks", run -> true);
    // the end of the first is not noted yet when the second plans a batch, and its start is noted after both
    String planned = anew.started("22222222-b", "run-2", "clicks", run -> !run.equals("run-1")).name;
    String noted = anew.started("22222222-b", "run-2", "clicks").name;
    System.out.println("anew " + planned + " " + noted + " " + anew.all().size());

    Queries both = new Queries();
    both.started("11111111-a", "run-1", "clicks", run -> true);
    String beside = both.started("22222222-b", "run-2", "clicks", run -> true).name;
    both.byId("11111111-a").active = false;
    String still = both.started("22222222-b", "run-2", "clicks").name;
    System.out.println("both " + beside + " " + still + " " + both.all().size());

    Queries again = new Queries();
    int known = 0;
    for (int start = 0; start < 1000; start++) {
      again.started(start + "-id-of-eight", "run-" + start, "clicks", run -> false); // the one before has ended
    }
    for (int start = 0; start < 1000; start++) {
      known += again.byId(start + "-id-of-eight") == null ? 0 : 1;
    }
    System.out.println("again " + known + " " + again.all().size());
  }
}
