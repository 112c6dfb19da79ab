import Forwarding
import Recordings
import Transcoder

/// Taps of streams that send nothing.
struct NoTaps: ProgrammeTaps {
    func open(
        _ source: ProgrammeSource, into input: InputID, ended: @escaping @Sendable (TapID) -> Void
    ) -> TapID? { nil }

    func close(_ tap: TapID, of source: ProgrammeSource) {}
    func demandKeyFrame(_ tap: TapID, of source: ProgrammeSource) {}
}
