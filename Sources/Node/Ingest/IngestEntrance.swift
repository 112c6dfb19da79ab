import Base
import Crypto
import Ingest
import Net
import Stage

/// How publishers connect by RTMP and SRT, and which of them may publish.
package struct IngestSettings: Sendable {
    /// What a stream key permits: one stream, under one identity.
    package struct Grant: Sendable {
        /// The only stream that the key is for.
        package let stream: StreamID
        /// The identity of the publisher.
        package let sender: Stage.Sender
        /// When the key was made, in seconds since 1970, to compare with the time of a revocation.
        ///
        /// Nil for a participant's own token, which is not revoked in this way.
        package let keyIssued: Int?

        package init(stream: StreamID, sender: Stage.Sender, keyIssued: Int? = nil) {
            self.stream = stream
            self.sender = sender
            self.keyIssued = keyIssued
        }
    }

    /// Why a key is not valid, for the person who set up the encoder.
    package struct Refusal: Error, Equatable {
        /// A whole sentence, in plain language.
        package let text: String

        package init(_ text: String) {
            self.text = text
        }
    }

    /// Where to listen for RTMP; nil to accept none.
    package let address: TransportAddress?
    /// Where to listen for RTMPS, and the certificate to answer with; nil to accept none.
    package let secure: (address: TransportAddress, identity: TLSIdentity)?
    /// Where to listen for SRT, and with which settings.
    package struct SRT: Sendable {
        /// The valid lengths of a passphrase, in bytes.
        package static let passphraseLengths = SRTServerSettings.passphraseLengths
        /// The valid latencies, in milliseconds.
        package static let latencies = SRTServerSettings.latencies

        let address: TransportAddress
        let server: SRTServerSettings

        /// - Parameters:
        ///   - passphrase: nil to accept unencrypted media.
        ///   - latency: in milliseconds.
        package init(address: TransportAddress, passphrase: Secret<String>?, latency: Int) {
            self.address = address
            server = SRTServerSettings(passphrase: passphrase, latency: latency)
        }
    }

    /// Nil to accept no publishers by SRT.
    package let srt: SRT?
    /// Parses and checks a stream key.
    ///
    /// For SRT it is also called on the thread on which the library receives, so it must not block.
    package let authorize: @Sendable (Secret<String>) throws(Refusal) -> Grant
    /// For connections by RTMP and RTMPS.
    package var limits = StreamServerLimits()

    package init(
        address: TransportAddress?, secure: (address: TransportAddress, identity: TLSIdentity)? = nil,
        srt: SRT? = nil,
        authorize: @escaping @Sendable (Secret<String>) throws(Refusal) -> Grant
    ) {
        self.address = address
        self.secure = secure
        self.srt = srt
        self.authorize = authorize
    }
}

/// Identifies a connection of an entrance; never used twice.
struct IngestConnection: Hashable, Sendable {
    enum Port: String, Hashable, Sendable {
        case rtmp, rtmps, srt
    }

    let port: Port
    /// Unique among the connections of its port.
    let number: ConnectionNumber

    /// The name for logs, pages and programs; RTMPS counts as RTMP.
    var protocolName: String { port == .srt ? "srt" : "rtmp" }
}

/// A node's ports for publishers by RTMP, RTMPS and SRT.
///
/// Each port has one thread, which parses what its publishers send and passes media directly to workers and to the
/// transcoder. The node decides who may publish and what becomes of their sessions: it receives events in its inbox
/// and answers by `tell`.
package final class IngestEntrance: Sendable {
    private let server: StreamServer<RTMPConversation>?
    private let secureServer: StreamServer<SecuredConversation<RTMPConversation>>?
    private let srt: SRTEntrance?
    /// The certificate for connections that begin from now on.
    private let identity: SharedIdentity

    /// Opens the ports.
    /// - Parameters:
    ///   - isDecoding: whether there is a transcoder.
    ///   - report: called on the ports' threads; must not block.
    /// - Throws: an error for an operator that names the option whose port could not be opened.
    init(
        _ settings: IngestSettings, isDecoding: Bool, report: @escaping @Sendable (IngestNews) -> Void
    ) throws {
        @Sendable func converse(
            _ connection: IngestConnection, _ remote: TransportAddress, _ now: MonotonicTime
        ) -> RTMPConversation {
            RTMPConversation(remote: remote, isDecoding: isDecoding, at: now) { event in
                report(IngestNews(connection: connection, event: event))
            }
        }
        let limits = settings.limits
        let slot = SharedIdentity(settings.secure?.identity)
        identity = slot
        server = try Self.open("RTMP (--rtmp)", settings.address) { address throws(NetError) in
            try StreamServer(bind: address, name: "rostrum-rtmp", limits: limits) { number, remote, now in
                converse(IngestConnection(port: .rtmp, number: number), remote, now)
            }
        }
        secureServer = try Self.open("RTMPS (--rtmps)", settings.secure?.address) {
            address throws(NetError) in
            try StreamServer(bind: address, name: "rostrum-rtmps", limits: limits) { number, remote, now in
                SecuredConversation(
                    converse(IngestConnection(port: .rtmps, number: number), remote, now),
                    as: slot.current)
            }
        }
        srt = try Self.open("SRT (--srt)", settings.srt) { port throws(NetError) in
            try SRTEntrance(settings, port, isDecoding: isDecoding, report: report)
        }
    }

    private static func open<Address, Server>(
        _ name: String, _ address: Address?, _ make: (Address) throws(NetError) -> Server
    ) throws(Failure) -> Server? {
        guard let address else { return nil }
        do throws(NetError) {
            return try make(address)
        } catch {
            throw Failure(description: "cannot listen for \(name): \(error)")
        }
    }

    private struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    /// Where RTMP is served, with the actual port; nil if it is not.
    var address: TransportAddress? { server?.localAddress }
    /// The same for RTMPS.
    var secureAddress: TransportAddress? { secureServer?.localAddress }

    /// The same for SRT.
    var srtAddress: TransportAddress? { srt?.address }

    /// Totals since the start; nil if SRT is not served.
    var srtCounters: SRTServerCounters? { srt?.counters }

    /// Totals of RTMP and RTMPS together, since the start.
    package var counters: StreamServerCounters {
        let all = [server?.counters, secureServer?.counters].compactMap(\.self)
        return all.dropFirst().reduce(all.first ?? StreamServerCounters()) { $0 + $1 }
    }

    /// Sets the certificate for RTMPS connections that begin from now on.
    func renew(_ identity: TLSIdentity) { self.identity.set(identity) }

    /// Sends a decision of the node to a connection's thread; without effect if the connection is gone.
    func tell(_ command: IngestCommand, to connection: IngestConnection) {
        switch connection.port {
        case .rtmp: server?.tell(command, to: connection.number)
        case .rtmps: secureServer?.tell(command, to: connection.number)
        case .srt: srt?.tell(command, to: connection.number)
        }
    }

    func stop() {
        server?.stop()
        secureServer?.stop()
        srt?.stop()
    }
}

/// What the entrance reports to the node about a publisher.
enum IngestEvent: Sendable {
    /// A publisher has sent its key; the node answers with `accept` or `end`.
    case asked(key: Secret<String>, from: TransportAddress)
    /// The formats of the publisher's media are known; the node answers with `open` or `end`.
    case begun(IngestFormats)
    /// The publisher's own pictures are available for HLS, besides the re-encoded ones that viewers receive.
    case originalBegun(SessionID)
    /// Advice for the person who set up the encoder.
    case notice(IngestNotice)
    /// Measurements of the media; repeated regularly.
    case report(IngestReport)
    /// Measurements of the publisher's link; repeated regularly.
    case link(SRTLink)
    /// A publisher was refused before there was a connection; the only event of that attempt.
    case rejected(IngestEnd, from: TransportAddress)
    /// The connection has ended; its last event.
    case ended(IngestEnd, from: TransportAddress)
}

/// An event of one connection.
///
/// Most events come once per connection, and connections are bounded. Of reports only the latest counts. Publishers
/// who are refused before they have a connection may be any number, so these events may be dropped.
struct IngestNews: InboxElement {
    enum Topic: Hashable {
        case report(IngestConnection)
        case link(IngestConnection)
    }

    let connection: IngestConnection
    let event: IngestEvent

    /// The events of a connection are handled in order, and those of different connections independently: the answer
    /// to `asked` may wait for the store.
    ///
    /// All refused attempts share a lane, nil, so that one task handles them, however many there are.
    var lane: IngestConnection? {
        if case .rejected = event { nil } else { connection }
    }

    var topic: Topic? {
        switch event {
        case .report: .report(connection)
        case .link: .link(connection)
        default: nil
        }
    }
    var isNeeded: Bool {
        switch event {
        case .report, .link, .rejected: false
        default: true
        }
    }
}
