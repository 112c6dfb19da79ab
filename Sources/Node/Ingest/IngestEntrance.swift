import Base
import Crypto
import Ingest
import Net
import Stage

/// How publishers are taken by RTMP and by SRT.
package struct IngestSettings: Sendable {
    /// What a key opens: which stream, and as whom.
    package struct Grant: Sendable {
        /// The only one that the key opens.
        package let stream: StreamID
        /// Who publishes.
        package let sender: Stage.Sender
        /// When the key was made, in seconds since 1970, for where it was revoked since; nil for somebody's own token.
        package let keyIssued: Int?

        package init(stream: StreamID, sender: Stage.Sender, keyIssued: Int? = nil) {
            self.stream = stream
            self.sender = sender
            self.keyIssued = keyIssued
        }
    }

    /// What is wrong with a key, for whoever set up the encoder.
    package struct Refusal: Error, Equatable {
        /// A sentence.
        package let text: String

        package init(_ text: String) {
            self.text = text
        }
    }

    /// Where to listen; nil for nowhere.
    package let address: TransportAddress?
    /// Where to listen for publishers by RTMPS, and by what certificate they are answered; nil for nowhere.
    package let secure: (address: TransportAddress, identity: TLSIdentity)?
    /// Where to listen for publishers by SRT, and how.
    package struct SRT: Sendable {
        /// In bytes.
        package static let passphraseLengths = SRTServerSettings.passphraseLengths
        /// In milliseconds.
        package static let latencies = SRTServerSettings.latencies

        let address: TransportAddress
        let server: SRTServerSettings

        package init(address: TransportAddress, passphrase: Secret<String>?, latency: Int) {
            self.address = address
            server = SRTServerSettings(passphrase: passphrase, latency: latency)
        }
    }

    /// Nil for nowhere.
    package let srt: SRT?
    /// Reads a stream key.
    package let authorize: @Sendable (Secret<String>) throws(Refusal) -> Grant
    /// Of connections by RTMP and RTMPS.
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

/// Names a connection of an entrance; never used twice.
struct IngestConnection: Hashable, Sendable {
    enum Port: String, Hashable, Sendable {
        case rtmp, rtmps, srt
    }

    let port: Port
    /// Among those of its port.
    let number: ConnectionNumber

    /// For logs, pages and programs; with TLS or without, RTMP is RTMP.
    var protocolName: String { port == .srt ? "srt" : "rtmp" }
}

/// A node's ports for publishers by RTMP, RTMPS and SRT.
///
/// One thread for all of a port: what they say is read there, and media goes from there straight to workers and to the
/// transcoder. Who may publish, and what becomes of their session, is the node's business: it hears of it by its inbox
/// and answers by `tell`.
package final class IngestEntrance: Sendable {
    private let server: StreamServer<RTMPConversation>?
    private let secureServer: StreamServer<SecuredConversation<RTMPConversation>>?
    private let srt: SRTEntrance?
    /// For those who connect from now on.
    private let identity: SharedIdentity

    /// Opens the ports.
    /// - Parameters:
    ///   - isDecoding: whether there is a transcoder.
    ///   - report: called by the entrance's thread; must not wait.
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
            throw Failure(description: "cannot take publishers by \(name): \(error)")
        }
    }

    private struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    /// Where it listens, by the real port; nil for nowhere.
    var address: TransportAddress? { server?.localAddress }
    /// The same by RTMPS.
    var secureAddress: TransportAddress? { secureServer?.localAddress }

    /// The same by SRT.
    var srtAddress: TransportAddress? { srt?.address }

    /// Since the start; nil where nobody is taken by SRT.
    var srtCounters: SRTServerCounters? { srt?.counters }

    /// Of the ports for RTMP and RTMPS together, since the start.
    package var counters: StreamServerCounters {
        let all = [server?.counters, secureServer?.counters].compactMap(\.self)
        return all.dropFirst().reduce(all.first ?? StreamServerCounters()) { $0 + $1 }
    }

    /// Who connects by RTMPS from now on is answered by this.
    func renew(_ identity: TLSIdentity) { self.identity.set(identity) }

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

/// What the node hears of a publisher.
enum IngestEvent: Sendable {
    /// Somebody wants to publish.
    case asked(key: Secret<String>, from: TransportAddress)
    /// What comes is known.
    case begun(IngestFormats)
    /// Its pictures are to be had as they come, too, where viewers get others in their place.
    case originalBegun(SessionID)
    case notice(IngestNotice)
    /// How it goes; told again soon.
    case report(IngestReport)
    /// What the link is like by which it comes; told again soon.
    case link(SRTLink)
    /// Somebody was refused before there was a connection; the only thing that is told of it.
    case rejected(IngestEnd, from: TransportAddress)
    /// Nothing more comes; the last that is told.
    case ended(IngestEnd, from: TransportAddress)
}

/// An event of one connection.
///
/// Each is told once for each connection, and connections are bounded; of reports the latest counts, and of those who
/// were refused before they had a connection there may be any number.
struct IngestNews: InboxElement {
    enum Topic: Hashable {
        case report(IngestConnection)
        case link(IngestConnection)
    }

    let connection: IngestConnection
    let event: IngestEvent

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
