import Base
import Foundation
import Restream

/// Where a publisher by RTMP goes: the server's address, and the key by which it is let in.
struct RTMPDestination: Sendable {
    let address: RestreamAddress
    let key: Secret<String>

    /// Takes `rtmp://host[:port]/application/key`, where the key may go on with a query, as encoders show it.
    init(parsing text: String) throws(UsageError) {
        let path = text.prefix { $0 != "?" }
        guard let slash = path.lastIndex(of: "/") else { throw Self.complaint(text) }
        try self.init(server: String(text[..<slash]), key: String(text[text.index(after: slash)...]))
    }

    init(server: String, key: String) throws(UsageError) {
        do throws(RestreamAddress.Failure) {
            address = try RestreamAddress(server)
        } catch {
            throw Self.complaint(server)
        }
        guard RestreamAddress.isKey(key) else { throw Self.complaint(server) }
        self.key = Secret(key)
    }

    private static func complaint(_ text: String) -> UsageError {
        UsageError("\"\(text)\" is nowhere to publish: write it like rtmp://127.0.0.1:1935/live/KEY")
    }

    /// Asks Rostrum where encoders of a stream go.
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
            throw RunFailure(description: "\(url.path) does not tell where encoders go: say --rtmp URL")
        }
        guard let rtmp = answer.rtmp else {
            throw RunFailure(description: "the server takes nobody by RTMP: it wants --rtmp ADDRESS:PORT")
        }
        return try RTMPDestination(server: rtmp.plainServer ?? rtmp.server, key: rtmp.key)
    }
}
