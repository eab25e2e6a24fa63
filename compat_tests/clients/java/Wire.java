// SPDX-License-Identifier: Apache-2.0

import com.alibaba.fastjson.JSON;
import com.alibaba.fastjson.JSONObject;
import com.alibaba.fastjson.serializer.SerializerFeature;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.Socket;
import java.nio.charset.StandardCharsets;

/** The control connection: one JSON object a line, both ways. */
final class Wire {
    private final BufferedReader in;
    private final OutputStream out;

    /** Connects to host:port. */
    Wire(String address) throws IOException {
        int colon = address.lastIndexOf(':');
        String host = address.substring(0, colon);
        int port = Integer.parseInt(address.substring(colon + 1));
        Socket socket = new Socket(host, port);
        socket.setTcpNoDelay(true);
        in = new BufferedReader(
                new InputStreamReader(socket.getInputStream(), StandardCharsets.UTF_8), 1 << 16);
        out = socket.getOutputStream();
    }

    /** The next command, or null when the other side is gone. */
    JSONObject read() {
        try {
            String line = in.readLine();
            return line == null ? null : JSON.parseObject(line);
        } catch (IOException gone) {
            return null;
        }
    }

    synchronized void write(JSONObject event) {
        String line = JSON.toJSONString(event, SerializerFeature.WriteMapNullValue) + "\n";
        try {
            out.write(line.getBytes(StandardCharsets.UTF_8));
            out.flush();
        } catch (IOException gone) {
            System.err.println("control connection lost: " + gone);
        }
    }
}
