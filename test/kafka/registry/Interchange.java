import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.google.protobuf.DescriptorProtos.FileDescriptorProto;
import com.google.protobuf.DescriptorProtos.FileDescriptorSet;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.FileDescriptor;
import com.google.protobuf.DynamicMessage;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.io.BinaryDecoder;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;

/**
 * Reads records in Confluent's wire format, one a line in base64, as a program on the JVM does: with the schema that the
 * registry has for their id, and the libraries that define the formats. Writes each anew in the same way. A line in front
 * of them gives the descriptors of the Protobuf messages.
 */
public final class Interchange {
  private static final ObjectMapper json = new ObjectMapper();
  private static final HttpClient http = HttpClient.newHttpClient();
  private static final Map<Integer, JsonNode> schemas = new HashMap<>();
  private static final Map<Integer, Schema> avro = new HashMap<>();

  public static void main(String[] args) throws Exception {
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    List<FileDescriptor> files = filesOf(Base64.getDecoder().decode(in.readLine()));
    StringBuilder out = new StringBuilder();
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      ByteBuffer record = ByteBuffer.wrap(Base64.getDecoder().decode(line));
      if (record.get() != 0) throw new IllegalArgumentException("no zero byte in front of " + line);
      int id = record.getInt();
      byte[] payload = new byte[record.remaining()];
      record.get(payload);
      byte[] again = again(args[0], id, payload, files);
      ByteBuffer written = ByteBuffer.allocate(5 + again.length).put((byte) 0).putInt(id).put(again);
      out.append(Base64.getEncoder().encodeToString(written.array())).append('\n');
    }
    System.out.print(out);
  }

  private static byte[] again(String registry, int id, byte[] payload, List<FileDescriptor> files) throws Exception {
    JsonNode schema = schemas.get(id);
    if (schema == null) {
      HttpRequest request = HttpRequest.newBuilder(URI.create(registry + "/schemas/ids/" + id)).build();
      schema = json.readTree(http.send(request, HttpResponse.BodyHandlers.ofString()).body());
      schemas.put(id, schema);
    }
    String type = schema.has("schemaType") ? schema.get("schemaType").asText() : "AVRO";
    if (type.equals("AVRO")) return avroAgain(id, schema.get("schema").asText(), payload);
    if (type.equals("JSON")) return json.writeValueAsBytes(json.readTree(payload));
    return protobufAgain(payload, files);
  }

  private static byte[] avroAgain(int id, String text, byte[] payload) throws Exception {
    Schema schema = avro.computeIfAbsent(id, (key) -> new Schema.Parser().parse(text));
    BinaryDecoder decoder = DecoderFactory.get().binaryDecoder(payload, null);
    Object datum = new GenericDatumReader<Object>(schema).read(null, decoder);
    if (!decoder.isEnd()) throw new IllegalArgumentException("bytes are left of a record of " + schema.getName());
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    BinaryEncoder encoder = EncoderFactory.get().binaryEncoder(bytes, null);
    new GenericDatumWriter<Object>(schema).write(datum, encoder);
    encoder.flush();
    return bytes.toByteArray();
  }

  private static byte[] protobufAgain(byte[] payload, List<FileDescriptor> files) throws Exception {
    int[] at = {0};
    int count = zigzag(payload, at);
    int[] indexes = count == 0 ? new int[] {0} : new int[count];
    for (int i = 0; i < count; i++) indexes[i] = zigzag(payload, at);
    FileDescriptor file = files.get(files.size() - 1);
    Descriptor message = file.getMessageTypes().get(indexes[0]);
    for (int i = 1; i < indexes.length; i++) message = message.getNestedTypes().get(indexes[i]);
    byte[] body = java.util.Arrays.copyOfRange(payload, at[0], payload.length);
    byte[] written = DynamicMessage.parseFrom(message, body).toByteArray();
    ByteBuffer all = ByteBuffer.allocate(at[0] + written.length);
    return all.put(payload, 0, at[0]).put(written).array();
  }

  private static int zigzag(byte[] bytes, int[] at) {
    int value = 0;
    for (int shift = 0; ; shift += 7) {
      byte next = bytes[at[0]++];
      value |= (next & 127) << shift;
      if (next >= 0) return (value >>> 1) ^ -(value & 1);
    }
  }

  private static List<FileDescriptor> filesOf(byte[] set) throws Exception {
    List<FileDescriptor> files = new ArrayList<>();
    for (FileDescriptorProto file : FileDescriptorSet.parseFrom(set).getFileList())
      files.add(FileDescriptor.buildFrom(file, files.toArray(new FileDescriptor[0])));
    return files;
  }
}
