import Base
import Forwarding
import Synchronization
import Transcoder

/// What a pause picture's job reports to the node; its media goes straight to the worker.
enum PauseEvent: Equatable, Sendable {
    /// The first picture is on its way to the worker.
    case playable(PauseDesk.Run)
    /// The job ended, or the transcoder died.
    case lost(PauseDesk.Run)

    /// The job that reports it.
    var run: PauseDesk.Run {
        switch self {
        case .playable(let run), .lost(let run): run
        }
    }
}

/// Passes a pause picture's packets from the transcoder's thread to a worker, without the node's actor.
final class PauseOutlet: Sendable {
    private let inlet: InjectionInlet
    private let run: PauseDesk.Run
    private let tell: @Sendable (PauseEvent) -> Void
    /// Whether `playable` was reported.
    private let hasBegun = Atomic(false)

    init(_ inlet: InjectionInlet, of run: PauseDesk.Run, tell: @escaping @Sendable (PauseEvent) -> Void) {
        self.inlet = inlet
        self.run = run
        self.tell = tell
    }

    func take(_ event: TranscoderSupervisor.JobEvent) {
        switch event {
        case .packet(let packet):
            var packets = InjectedPackets()
            packets.append(packet.bytes.span, source: 0, captured: packet.captured)
            inlet.send(packets)
            if !hasBegun.exchange(true, ordering: .relaxed) { tell(.playable(run)) }
        case .lost, .ended: tell(.lost(run))
        case .report, .keyFrameWanted: break
        }
    }
}
