import Base
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

    /// Where to listen.
    package let address: TransportAddress
    /// Reads a stream key.
    package let authorize: @Sendable (Secret<String>) throws(Refusal) -> Grant
    /// Of connections.
    package var limits = StreamServerLimits()

    package init(
        address: TransportAddress,
        authorize: @escaping @Sendable (Secret<String>) throws(Refusal) -> Grant
    ) {
        self.address = address
        self.authorize = authorize
    }
}

/// A node's port for publishers by RTMP.
///
/// One thread for all of them: what they say is read there, and media goes from there straight to workers and to the
/// transcoder. Who may publish, and what becomes of their session, is the node's business: it hears of it by its inbox
/// and answers by `tell`.
package final class IngestEntrance: Sendable {
    private let server: StreamServer<RTMPConversation>

    /// Opens the port.
    /// - Parameters:
    ///   - isDecoding: whether there is a transcoder.
    ///   - report: called by the entrance's thread; must not wait.
    init(
        _ settings: IngestSettings, isDecoding: Bool, report: @escaping @Sendable (IngestNews) -> Void
    ) throws {
        do throws(NetError) {
            server = try StreamServer(
                bind: settings.address, name: "rostrum-rtmp", limits: settings.limits
            ) { number, remote, now in
                RTMPConversation(remote: remote, isDecoding: isDecoding, at: now) { event in
                    report(IngestNews(connection: number, event: event))
                }
            }
        } catch {
            throw Failure(description: "cannot take publishers by RTMP (--rtmp): \(error)")
        }
    }

    private struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    /// Where it listens; the port is the real one.
    var address: TransportAddress { server.localAddress }
    /// Since the start.
    package var counters: StreamServerCounters { server.counters }

    func tell(_ command: RTMPConversation.Command, to connection: ConnectionNumber) {
        server.tell(command, to: connection)
    }

    func stop() { server.stop() }
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
    let connection: ConnectionNumber
    let event: IngestEvent

    var topic: ConnectionNumber? {
        if case .report = event { connection } else { nil }
    }
    var isNeeded: Bool {
        if case .report = event { false } else { true }
    }
}
