import Base
import Ingest
import Net

/// A node's port for publishers by SRT.
///
/// Whoever is not let in is told why by a code, before there is a connection: a key that is none by the entrance
/// itself, anything else by the node, whose answer is waited for a moment.
final class SRTEntrance: Sendable {
    private let server: SRTServer<SRTConversation>
    private let report: @Sendable (IngestNews) -> Void

    /// - Parameter report: as the entrance has it.
    init(
        _ settings: IngestSettings, _ port: IngestSettings.SRT, isDecoding: Bool,
        report: @escaping @Sendable (IngestNews) -> Void
    ) throws(NetError) {
        self.report = report
        server = try SRTServer(bind: port.address, name: "rostrum-srt", port.server) { call in
            Self.admit(call, settings, report)
        } lose: { call in
            let text =
                port.server.passphrase == nil
                ? "The handshake was not finished."
                : "The encryption was not agreed on: check the passphrase."
            Self.tell(.ended(.refused(text), from: call.remote), of: call, report)
        } make: { number, remote, now in
            SRTConversation(remote: remote, isDecoding: isDecoding, at: now) { event in
                report(IngestNews(connection: IngestConnection(port: .srt, number: number), event: event))
            }
        }
    }

    var address: TransportAddress { server.localAddress }
    var counters: SRTServerCounters { server.counters }

    func tell(_ command: IngestCommand, to number: ConnectionNumber) {
        switch command {
        case .accept: _ = server.answer(nil, to: number)
        case .end(let reason):
            // Nobody is there yet who could say that it has ended.
            if let call = server.answer(SRTRejection(reason), to: number) {
                return Self.tell(.ended(reason, from: call.remote), of: call, report)
            }
        case .open, .makeKeyFrame: break
        }
        server.tell(command, to: number)
    }

    func stop() { server.stop() }

    /// - Returns: nil where the node has to decide.
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
            // Cheap, and so done here: strangers do not get as far as the node.
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
    /// As SRT says it.
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
