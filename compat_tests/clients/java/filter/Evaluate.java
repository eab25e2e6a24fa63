// SPDX-License-Identifier: Apache-2.0

import java.io.BufferedReader;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;
import org.apache.rocketmq.filter.FilterFactory;
import org.apache.rocketmq.filter.expression.EvaluationContext;
import org.apache.rocketmq.filter.expression.Expression;
import org.apache.rocketmq.filter.expression.MQFilterException;

/**
 * What the original's SQL92 filter makes of expressions and properties.
 *
 * <p>Arguments: a file to read and one to write. A line that is read has an expression and then
 * names and values of properties, all in Base64, separated by tabs. The line that is written for it
 * is true, false or null, as the expression evaluates, "throws" when that fails, "refused" when it
 * does not compile.
 */
final class Evaluate {
    private Evaluate() {}

    public static void main(String[] arguments) throws Exception {
        try (BufferedReader lines = Files.newBufferedReader(Path.of(arguments[0]));
                PrintWriter outcomes =
                        new PrintWriter(Files.newBufferedWriter(Path.of(arguments[1])))) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                outcomes.println(outcome(line.split("\t", -1)));
            }
            outcomes.println("end");
        }
    }

    private static String outcome(String[] fields) {
        Map<String, Object> properties = new HashMap<>();
        for (int i = 1; i + 1 < fields.length; i += 2) {
            properties.put(text(fields[i]), text(fields[i + 1]));
        }
        Expression expression;
        try {
            expression = FilterFactory.INSTANCE.get("SQL92").compile(text(fields[0]));
        } catch (MQFilterException refused) {
            return "refused";
        }
        try {
            return String.valueOf(expression.evaluate(context(properties)));
        } catch (Throwable failed) {
            return "throws";
        }
    }

    private static EvaluationContext context(Map<String, Object> properties) {
        return new EvaluationContext() {
            @Override
            public Object get(String name) {
                return properties.get(name);
            }

            @Override
            public Map<String, Object> keyValues() {
                return properties;
            }
        };
    }

    private static String text(String field) {
        return new String(Base64.getDecoder().decode(field), StandardCharsets.UTF_8);
    }
}
