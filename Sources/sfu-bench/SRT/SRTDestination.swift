import Base
import Foundation
import Net

/// The target of an SRT publisher: the server's address, the stream ID, and the connection's settings.
struct SRTDestination: Sendable {
    let host: String
    let port: UInt16
    let streamID: Secret<String>
    let settings: SRTServerSettings

    /// The receiver's buffer in milliseconds, if the address does not set it; the larger value of both ends counts.
    private static let usualLatency = 200

    /// Parses `srt://host:port?streamid=ID[&passphrase=WORDS][&latency=MILLISECONDS]`, as encoders use it.
    ///
    /// Unknown parameters are refused.
    init(parsing text: String) throws(UsageError) {
        guard let parts = URLComponents(string: text), parts.scheme == "srt", let host = parts.host,
            let port = parts.port.flatMap({ UInt16(exactly: $0) }), port > 0
        else { throw Self.complaint }
        let values = Dictionary(
            (parts.queryItems ?? []).map { ($0.name, $0.value ?? "") }, uniquingKeysWith: { $1 })
        guard Set(values.keys).isSubset(of: ["streamid", "passphrase", "latency", "mode"]),
            values["mode"] ?? "caller" == "caller", let id = values["streamid"], !id.isEmpty
        else { throw Self.complaint }
        try self.init(
            host: host, port: port, streamID: id, passphrase: values["passphrase"],
            latency: values["latency"])
    }

    private init(
        host: String, port: UInt16, streamID: String, passphrase: String?, latency: String?
    ) throws(UsageError) {
        // URLs have IPv6 addresses in brackets.
        self.host = host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
        self.port = port
        guard streamID.utf8.count <= 512 else { throw UsageError("streamid= must be at most 512 bytes") }
        self.streamID = Secret(streamID)
        if let passphrase, !SRTServerSettings.passphraseLengths.contains(passphrase.utf8.count) {
            throw UsageError("passphrase= must be 10 to 79 bytes")
        }
        let milliseconds = latency.map { Int($0) ?? -1 } ?? Self.usualLatency
        guard SRTServerSettings.latencies.contains(milliseconds) else {
            throw UsageError("latency= must be a whole number of milliseconds from 20 to 8000")
        }
        settings = SRTServerSettings(passphrase: passphrase.map { Secret($0) }, latency: milliseconds)
    }

    /// Does not repeat what was given: stream ID and passphrase are secrets.
    private static var complaint: UsageError {
        UsageError("what was given is not an SRT URL; use the form srt://127.0.0.1:9710?streamid=ID")
    }

    /// Asks Rostrum for the address and stream ID of a stream's encoders.
    /// - Throws: `RunFailure` if the server does not answer so, does not accept SRT, or requires a passphrase, which it
    ///   does not reveal.
    static func asked(
        of server: ServerAddress, for stream: String, token: String?, _ client: SignallingClient
    ) async throws -> SRTDestination {
        struct Answer: Decodable {
            struct SRT: Decodable {
                var server: String
                var streamId: String?
                var passphrase: Bool
            }

            var srt: SRT?
        }
        let url = try server.endpoint("/v1/streams/{stream}/ingest", stream: stream)
        let text = try await client.get(url, token: token)
        guard let answer = try? JSONDecoder().decode(Answer.self, from: Data(text.utf8)) else {
            throw RunFailure(description: "\(url.path) does not give an address for encoders; set --srt URL")
        }
        guard let srt = answer.srt else {
            throw RunFailure(description: "the server does not accept SRT; start it with --srt ADDRESS:PORT")
        }
        guard !srt.passphrase else {
            throw RunFailure(
                description: "the server needs a passphrase; set --srt URL with passphrase= in it")
        }
        guard let id = srt.streamId, let parts = URLComponents(string: srt.server), let host = parts.host,
            let port = parts.port.flatMap({ UInt16(exactly: $0) })
        else { throw RunFailure(description: "\(url.path) does not give a stream ID; set --srt URL") }
        return try SRTDestination(host: host, port: port, streamID: id, passphrase: nil, latency: nil)
    }
}
