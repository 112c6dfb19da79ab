import Base
import Ingest
import Net

/// A node's port for publishers by SRT.
///
/// A refused publisher gets a reason code before there is a connection. The entrance itself refuses invalid keys; for
/// everything else it waits a moment for the node's answer.
final class SRTEntrance: Sendable {
    private let server: SRTServer<SRTConversation>
    private let report: @Sendable (IngestNews) -> Void

    /// - Parameter report: called on the library's thread and on the port's; must not block.
    init(
        _ settings: IngestSettings, _ port: IngestSettings.SRT, isDecoding: Bool,
        report: @escaping @Sendable (IngestNews) -> Void
    ) throws(NetError) {
        self.report = report
        server = try SRTServer(bind: port.address, name: "rostrum-srt", port.server) { call in
            Self.admit(call, settings, report)
        } lose: { call in
            // The handshake began and was not completed; a wrong passphrase is the most likely reason for that.
            let text =
                port.server.passphrase == nil
                ? "The handshake wasn't completed."
                : "Encryption couldn't be set up. Check the passphrase."
            Self.tell(.ended(.refused(text), from: call.remote), of: call, report)
        } make: { number, remote, now in
            SRTConversation(remote: remote, isDecoding: isDecoding, at: now) { event in
                report(IngestNews(connection: IngestConnection(port: .srt, number: number), event: event))
            }
        }
    }

    var address: TransportAddress { server.localAddress }
    var counters: SRTServerCounters { server.counters }

    /// Performs a decision of the node, as the answer to a call that waits for it, or on the connection.
    func tell(_ command: IngestCommand, to number: ConnectionNumber) {
        switch command {
        case .accept: _ = server.answer(nil, to: number)
        case .end(let reason):
            // There is no conversation yet that could report the end.
            if let call = server.answer(SRTRejection(reason), to: number) {
                return Self.tell(.ended(reason, from: call.remote), of: call, report)
            }
        case .open, .makeKeyFrame: break
        }
        server.tell(command, to: number)
    }

    func stop() { server.stop() }

    /// Checks the key of a publisher who calls.
    /// - Returns: why the call is rejected; nil if the node has to decide.
    private static func admit(
        _ call: SRTCall, _ settings: IngestSettings, _ report: (IngestNews) -> Void
    ) -> SRTRejection? {
        let key: Secret<String>
        do throws(SRTStreamID.Fault) {
            key = try SRTStreamID(parsing: call.streamID).field
        } catch {
            tell(.rejected(.badKey(error.text), from: call.remote), of: call, report)
            return error == .notPublishing ? .badMode : .badRequest
        }
        do throws(IngestSettings.Refusal) {
            // A cheap check, made on the library's thread, so that invalid keys do not cost the node anything.
            _ = try settings.authorize(key)
        } catch {
            tell(.rejected(.badKey(error.text), from: call.remote), of: call, report)
            return .unauthorized
        }
        tell(.asked(key: key, from: call.remote), of: call, report)
        return nil
    }

    private static func tell(_ event: IngestEvent, of call: SRTCall, _ report: (IngestNews) -> Void) {
        report(IngestNews(connection: IngestConnection(port: .srt, number: call.number), event: event))
    }
}

extension SRTRejection {
    /// The code by which SRT reports a reason.
    fileprivate init(_ reason: IngestEnd) {
        self =
            switch reason {
            case .unknownStream: .notFound
            case .badKey: .unauthorized
            case .overloaded: .overload
            case .refused, .unknownApplication, .unsupported: .forbidden
            case .ended: .conflict
            case .malformed, .byPublisher, .timedOut, .stalled: .badRequest
            }
    }
}
