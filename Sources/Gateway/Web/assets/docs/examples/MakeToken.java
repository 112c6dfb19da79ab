// Creates a token with Java 17 or later: java MakeToken.java. Values that contain quotes need a JSON library.
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.Base64;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

public class MakeToken {
    static String encode(byte[] data) {
        return Base64.getUrlEncoder().withoutPadding().encodeToString(data);
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static String makeToken(String sub, String name, String role, String stream, long seconds) throws Exception {
        String claims = """
            {"iss":"%s","sub":"%s","name":"%s","role":"%s","stream":"%s","exp":%d}"""
            .formatted(System.getenv("ROSTRUM_KEY_ID"), sub, name, role, stream,
                Instant.now().getEpochSecond() + seconds);
        String signed = encode(bytes("{\"alg\":\"HS256\",\"typ\":\"JWT\"}")) + "." + encode(bytes(claims));
        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(bytes(System.getenv("ROSTRUM_SECRET")), "HmacSHA256"));
        return signed + "." + encode(mac.doFinal(bytes(signed)));
    }

    public static void main(String[] arguments) throws Exception {
        System.out.println(makeToken("ann", "Ann", "host", "talk", 3600));
    }
}
