// SPDX-License-Identifier: Apache-2.0

import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.lang.reflect.TypeVariable;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.BitSet;
import java.util.Collection;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.rocketmq.remoting.protocol.RemotingSerializable;

/**
 * Prints, for each class named in the files given, a fresh and a filled object as the official jars write
 * them; of some, also in the form of a configuration file, newlines and tabs escaped, and of a registration
 * the compressed form in base64.
 */
public class PrintBodies {
    private static int number;

    public static void main(String[] args) throws Exception {
        for (String file : args) {
            for (String name : Files.readAllLines(Paths.get(file))) {
                Class<?> type;
                try {
                    type = Class.forName(name.trim());
                } catch (ClassNotFoundException e) {
                    continue;
                }
                print(type, "fresh", RemotingSerializable.toJson(create(type), false));
                number = 0;
                Object filled = fill(create(type), 0);
                print(type, "filled", RemotingSerializable.toJson(filled, false));
                if (name.endsWith("SerializeWrapper") || name.endsWith("GroupWrapper")) {
                    String pretty = RemotingSerializable.toJson(filled, true);
                    print(type, "pretty", pretty.replace("\n", "\\n").replace("\t", "\\t"));
                }
                if (name.endsWith("RegisterBrokerBody")) {
                    byte[] compressed = (byte[]) type.getMethod("encode", boolean.class).invoke(filled, true);
                    print(type, "compressed", Base64.getEncoder().encodeToString(compressed));
                }
            }
        }
    }

    private static void print(Class<?> type, String kind, String text) {
        System.out.println(type.getSimpleName() + "\t" + kind + "\t" + text);
    }

    private static Object create(Class<?> type) throws Exception {
        for (Constructor<?> each : type.getDeclaredConstructors()) {
            if (each.getParameterCount() == 0) {
                each.setAccessible(true);
                return each.newInstance();
            }
        }
        if (Modifier.isAbstract(type.getModifiers())) {
            return null;
        }
        Constructor<?> least = null;
        for (Constructor<?> each : type.getDeclaredConstructors()) {
            boolean copies = Arrays.asList(each.getParameterTypes()).contains(type);
            if (!copies && (least == null || each.getParameterCount() < least.getParameterCount())) {
                least = each;
            }
        }
        Object[] arguments = new Object[least.getParameterCount()];
        for (int i = 0; i < arguments.length; i++) {
            arguments[i] = value(least.getGenericParameterTypes()[i], "argument" + i, 1);
        }
        least.setAccessible(true);
        return least.newInstance(arguments);
    }

    private static Object fill(Object object, int depth) throws Exception {
        for (Class<?> type = object.getClass(); type != Object.class; type = type.getSuperclass()) {
            for (Field field : type.getDeclaredFields()) {
                int modifiers = field.getModifiers();
                if (Modifier.isStatic(modifiers) || Modifier.isTransient(modifiers)) {
                    continue;
                }
                field.setAccessible(true);
                Object value = value(field.getGenericType(), field.getName(), depth);
                if (value != null) {
                    field.set(object, value);
                }
            }
        }
        return object;
    }

    private static Object value(Type generic, String name, int depth) throws Exception {
        if (generic instanceof TypeVariable) {
            return name;
        }
        Class<?> type = (Class<?>) (generic instanceof ParameterizedType ? ((ParameterizedType) generic).getRawType() : generic);
        Type[] of = generic instanceof ParameterizedType ? ((ParameterizedType) generic).getActualTypeArguments() : new Type[0];
        number++;
        if (type == String.class || type == Object.class) {
            return name;
        } else if (type == int.class || type == Integer.class) {
            return number;
        } else if (type == long.class || type == Long.class) {
            return 10000000000L + number;
        } else if (type == boolean.class || type == Boolean.class) {
            return true;
        } else if (type == double.class || type == Double.class) {
            return number + 0.5;
        } else if (type == byte.class || type == Byte.class) {
            return (byte) number;
        } else if (type == AtomicLong.class) {
            return new AtomicLong(number);
        } else if (type == BitSet.class) {
            BitSet bits = new BitSet();
            bits.set(1);
            bits.set(number);
            return bits;
        } else if (type == long[].class) {
            return new long[] {1000, 5000};
        } else if (type.isEnum()) {
            return type.getEnumConstants()[type.getEnumConstants().length - 1];
        } else if (Map.class.isAssignableFrom(type)) {
            Map<Object, Object> map = Modifier.isAbstract(type.getModifiers())
                ? (ConcurrentMap.class.isAssignableFrom(type) ? new ConcurrentHashMap<>() : new TreeMap<>())
                : (Map<Object, Object>) type.getDeclaredConstructor().newInstance();
            if (of.length == 0) {
                of = new Type[] {String.class, String.class};
            }
            int size = of[0] == Integer.class || of[0] == Long.class ? 2 : 1;
            for (int i = 0; i < size; i++) {
                map.put(value(of[0], name + "Key", depth + 1), value(of[1], name + "Value", depth + 1));
            }
            return map;
        } else if (Collection.class.isAssignableFrom(type)) {
            Collection<Object> items = Modifier.isAbstract(type.getModifiers())
                ? (Set.class.isAssignableFrom(type) ? new HashSet<>() : new ArrayList<>())
                : (Collection<Object>) type.getDeclaredConstructor().newInstance();
            items.add(value(of[0], name + "Item", depth + 1));
            return items;
        } else if (depth > 6 || type.getName().startsWith("java.")) {
            return null;
        }
        Object object = create(type);
        return object == null ? null : fill(object, depth + 1);
    }
}
