// SPDX-License-Identifier: Apache-2.0

import java.io.File;
import java.lang.annotation.Annotation;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.Enumeration;
import java.util.TreeSet;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import org.apache.rocketmq.remoting.CommandCustomHeader;

/**
 * Prints every header class of the official jars in the directory given: name, request code, fields in
 * the order of declaration, those of base classes last. A field is name:type, "!" when it is mandatory,
 * "=value" when a fresh object has one.
 */
public class PrintHeaders {
    public static void main(String[] args) throws Exception {
        TreeSet<String> lines = new TreeSet<>();
        for (File jar : new File(args[0]).listFiles()) {
            if (jar.getName().matches("rocketmq-(common|remoting|controller)-.*jar")) {
                try (JarFile entries = new JarFile(jar)) {
                    for (Enumeration<JarEntry> e = entries.entries(); e.hasMoreElements();) {
                        String name = e.nextElement().getName();
                        if (name.endsWith(".class")) {
                            add(name.substring(0, name.length() - 6).replace('/', '.'), lines);
                        }
                    }
                }
            }
        }
        lines.forEach(System.out::println);
    }

    private static void add(String name, TreeSet<String> lines) {
        try {
            Class<?> type = Class.forName(name, false, PrintHeaders.class.getClassLoader());
            if (CommandCustomHeader.class.isAssignableFrom(type) && !type.isInterface()) {
                lines.add(line(type));
            }
        } catch (ReflectiveOperationException | LinkageError e) {
            // not a header: those need nothing but the jars
        }
    }

    private static String line(Class<?> type) throws ReflectiveOperationException {
        StringBuilder text = new StringBuilder(type.getName()).append('\t').append(requestCode(type)).append('\t');
        Object fresh = fresh(type);
        for (Class<?> each = type; each != Object.class; each = each.getSuperclass()) {
            for (Field field : each.getDeclaredFields()) {
                if (!Modifier.isStatic(field.getModifiers())) {
                    text.append(field.getName()).append(':').append(field.getType().getSimpleName());
                    text.append(has(field.getAnnotations(), "CFNotNull") ? "!" : "");
                    field.setAccessible(true);
                    Object value = fresh == null ? null : field.get(fresh);
                    text.append(value == null ? "" : "=" + value).append(' ');
                }
            }
        }
        return text.toString().trim();
    }

    private static Object fresh(Class<?> type) throws ReflectiveOperationException {
        for (Constructor<?> each : type.getDeclaredConstructors()) {
            if (each.getParameterCount() == 0 && !Modifier.isAbstract(type.getModifiers())) {
                each.setAccessible(true);
                return each.newInstance();
            }
        }
        return null;
    }

    private static boolean has(Annotation[] annotations, String name) {
        for (Annotation each : annotations) {
            if (each.annotationType().getSimpleName().equals(name)) {
                return true;
            }
        }
        return false;
    }

    private static String requestCode(Class<?> type) throws ReflectiveOperationException {
        for (Annotation each : type.getAnnotations()) {
            if (each.annotationType().getSimpleName().equals("RocketMQAction")) {
                return String.valueOf(each.annotationType().getMethod("value").invoke(each));
            }
        }
        return "-";
    }
}
