package sluicegate.attach;

import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.ColumnarRule;
import org.apache.spark.sql.execution.SparkPlan;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/** spark.sql.extensions=sluicegate.attach.Extension: applies {@link PlanRule} to every physical plan. */
public final class Extension extends AbstractFunction1<SparkSessionExtensions, BoxedUnit> {
  @Override
  public BoxedUnit apply(SparkSessionExtensions extensions) {
    try {
      extensions.injectColumnar(new Rules());
    } catch (Throwable problem) {
      Guard.say("no plan rule, tasks stay as they are: " + problem);
    }
    return BoxedUnit.UNIT;
  }

  private static final class Rules extends AbstractFunction1<SparkSession, ColumnarRule> {
    @Override
    public ColumnarRule apply(SparkSession session) {
      Attachment.attachWithoutPlugin(session);
      return new ColumnarRule() {
        @Override
        public Rule<SparkPlan> preColumnarTransitions() {
          return new PlanRule(session);
        }
      };
    }
  }
}
