import Base
import Foundation
import Restream

/// The target of an RTMP publisher: the server's address, and the stream key.
struct RTMPDestination: Sendable {
    let address: RestreamAddress
    let key: Secret<String>

    /// Parses `rtmp://host[:port]/application/key`, where the key may have a query, as encoders display it.
    init(parsing text: String) throws(UsageError) {
        // A slash in the key's query does not separate it from the application.
        let path = text.prefix { $0 != "?" }
        guard let slash = path.lastIndex(of: "/") else { throw Self.complaint }
        try self.init(server: String(text[..<slash]), key: String(text[text.index(after: slash)...]))
    }

    init(server: String, key: String) throws(UsageError) {
        do throws(RestreamAddress.Failure) {
            address = try RestreamAddress(server)
        } catch {
            throw Self.complaint
        }
        guard RestreamAddress.isKey(key) else { throw Self.complaint }
        self.key = Secret(key)
    }

    /// Does not repeat what was given: where that makes no sense, any part of it may be the key.
    private static var complaint: UsageError {
        UsageError("what was given is not an RTMP URL; use the form rtmp://127.0.0.1:1935/live/KEY")
    }

    /// Asks Rostrum for the address and key of a stream's encoders.
    /// - Throws: `RunFailure` if the server does not answer so, or does not accept RTMP.
    static func asked(
        of server: ServerAddress, for stream: String, token: String?, _ client: SignallingClient
    ) async throws -> RTMPDestination {
        struct Answer: Decodable {
            struct RTMP: Decodable {
                var server: String
                var plainServer: String?
                var key: String
            }

            var rtmp: RTMP?
        }
        let url = try server.endpoint("/v1/streams/{stream}/ingest", stream: stream)
        let text = try await client.get(url, token: token)
        guard let answer = try? JSONDecoder().decode(Answer.self, from: Data(text.utf8)) else {
            throw RunFailure(description: "\(url.path) does not give an address for encoders; set --rtmp URL")
        }
        guard let rtmp = answer.rtmp else {
            throw RunFailure(
                description: "the server does not accept RTMP; start it with --rtmp ADDRESS:PORT")
        }
        // Without TLS if the server offers both.
        return try RTMPDestination(server: rtmp.plainServer ?? rtmp.server, key: rtmp.key)
    }
}
