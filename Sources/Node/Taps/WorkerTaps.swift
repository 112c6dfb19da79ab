import Forwarding
import Recordings
import Transcoder

/// Taps on what workers forward, for recordings, clips and HLS.
///
/// Packets go from the worker's thread straight to the transcoder; no actor is involved.
struct WorkerTaps: ProgrammeTaps {
    let transcoder: TranscoderSupervisor
    let numbers: TapNumbers
    /// Posts a command to a worker, by its index; false if the worker's mailbox accepts no more.
    let post: @Sendable (Int, WorkerCommand) -> Bool
    /// Whether taps take only layers that are sent for others.
    private(set) var isAlongside = false

    /// The same taps, for media that is kept in case a clip is made of it.
    ///
    /// No publisher sends more because of them.
    var alongside: WorkerTaps {
        var taps = self
        taps.isAlongside = true
        return taps
    }

    /// Opens a tap on all packets of a source, with a sink that feeds the input.
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
