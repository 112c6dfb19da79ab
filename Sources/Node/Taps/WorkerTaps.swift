import Forwarding
import Recordings
import Transcoder

/// Taps on what workers forward, for recordings, clips and HLS: packets go straight from the worker's thread to the
/// transcoder.
struct WorkerTaps: ProgrammeTaps {
    let transcoder: TranscoderSupervisor
    let numbers: TapNumbers
    /// Hands a command to a worker; false if that takes no more.
    let post: @Sendable (Int, WorkerCommand) -> Bool
    /// Whether they take only what comes for others.
    private(set) var isAlongside = false

    /// The same, for what is kept in case that it is wanted: no publisher sends anything for its sake.
    var alongside: WorkerTaps {
        var taps = self
        taps.isAlongside = true
        return taps
    }

    func open(
        _ source: ProgrammeSource, into input: InputID, ended: @escaping @Sendable (TapID) -> Void
    ) -> TapID? {
        guard let target = source.target else { return nil }
        let tap = numbers.next()
        let sink = ProgrammeFeed(transcoder, input) { ended(tap) }
        let opening = TapOpening(
            id: tap, target: target, mode: .whole, isAlongside: isAlongside, sink: sink)
        return post(source.worker, .openTap(opening)) ? tap : nil
    }

    func close(_ tap: TapID, of source: ProgrammeSource) {
        _ = post(source.worker, .closeTap(tap))
    }

    func demandKeyFrame(_ tap: TapID, of source: ProgrammeSource) {
        _ = post(source.worker, .demandKeyFrame(tap))
    }
}
