package sluicegate.attach;

import java.util.List;
import java.util.regex.Pattern;

/** The reasons of a log in words for people on call, as runlog/plain_words.py puts them; a test compares the two. */
final class PlainWords {
  private record Rule(Pattern found, String words) {
    static Rule of(String found, String words) {
      return new Rule(Pattern.compile(found), words);
    }
  }

  private static final List<Rule> RULES =
      List.of(
          Rule.of("\\bE\\[T\\] inf s\\b", "the queue there would grow without bound"),
          Rule.of("\\bE\\[T\\] ([\\d.,e+-]+ s)\\b", "a row spends about $1 there"),
          Rule.of("\\bmodel bias 1\\.00\\b", "predictions have been right on average"),
          Rule.of("\\bmodel bias ([\\d.]+)\\b", "latency has been $1 times what was predicted, which is allowed for"),
          Rule.of("\\b(\\d+%) in reserve\\b", "$1 of the promise is kept in reserve"),
          Rule.of("^(\\S+: |)load: ", "$1planned for a load of "),
          Rule.of("(?<![\\d.,])1 processors carry\\b", "1 processor carries"),
          Rule.of("(?<![\\d.,])1 processors\\b", "1 processor"),
          Rule.of("\\(goal ([\\d.]+ s)\\)", "(planned to stay below $1)"));

  private PlainWords() {}

  static String plain(String reason) {
    String text = reason;
    for (Rule rule : RULES) {
      text = rule.found.matcher(text).replaceAll(rule.words);
    }
    return text;
  }
}
