import Base
import Crypto
import Ingest
import Net
import Stage

/// How publishers are taken by RTMP.
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
    /// Reads a stream key.
    package let authorize: @Sendable (Secret<String>) throws(Refusal) -> Grant
    /// Of connections.
    package var limits = StreamServerLimits()

    package init(
        address: TransportAddress?, secure: (address: TransportAddress, identity: TLSIdentity)? = nil,
        authorize: @escaping @Sendable (Secret<String>) throws(Refusal) -> Grant
    ) {
        self.address = address
        self.secure = secure
        self.authorize = authorize
    }
}

/// Names a connection of an entrance; never used twice.
struct IngestConnection: Hashable, Sendable {
    let isSecure: Bool
    /// Among those of its port.
    let number: ConnectionNumber
}

/// A node's ports for publishers by RTMP and RTMPS.
///
/// One thread for all of a port: what they say is read there, and media goes from there straight to workers and to the
/// transcoder. Who may publish, and what becomes of their session, is the node's business: it hears of it by its inbox
/// and answers by `tell`.
package final class IngestEntrance: Sendable {
    private let server: StreamServer<RTMPConversation>?
    private let secureServer: StreamServer<SecuredConversation<RTMPConversation>>?
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
                converse(IngestConnection(isSecure: false, number: number), remote, now)
            }
        }
        secureServer = try Self.open("RTMPS (--rtmps)", settings.secure?.address) {
            address throws(NetError) in
            try StreamServer(bind: address, name: "rostrum-rtmps", limits: limits) { number, remote, now in
                SecuredConversation(
                    converse(IngestConnection(isSecure: true, number: number), remote, now),
                    as: slot.current)
            }
        }
    }

    private static func open<Server>(
        _ name: String, _ address: TransportAddress?, _ make: (TransportAddress) throws(NetError) -> Server
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

    /// Of both ports together, since the start.
    package var counters: StreamServerCounters {
        let all = [server?.counters, secureServer?.counters].compactMap(\.self)
        return all.dropFirst().reduce(all.first ?? StreamServerCounters()) { $0 + $1 }
    }

    /// Who connects by RTMPS from now on is answered by this.
    func renew(_ identity: TLSIdentity) { self.identity.set(identity) }

    func tell(_ command: RTMPConversation.Command, to connection: IngestConnection) {
        if connection.isSecure {
            secureServer?.tell(command, to: connection.number)
        } else {
            server?.tell(command, to: connection.number)
        }
    }

    func stop() {
        server?.stop()
        secureServer?.stop()
    }
}

/// What the node hears of a publisher.
enum IngestEvent: Sendable {
    /// Somebody wants to publish.
    case asked(key: Secret<String>, from: TransportAddress)
    /// What comes is known.
    case begun(IngestFormats)
    case notice(IngestNotice)
    /// How it goes; told again soon.
    case report(IngestReport)
    /// Nothing more comes; the last that is told.
    case ended(IngestEnd, from: TransportAddress)
}

/// An event of one connection.
///
/// Each is told once for each connection, and connections are bounded; of reports the latest counts.
struct IngestNews: InboxElement {
    let connection: IngestConnection
    let event: IngestEvent

    var topic: IngestConnection? {
        if case .report = event { connection } else { nil }
    }
    var isNeeded: Bool {
        if case .report = event { false } else { true }
    }
}
