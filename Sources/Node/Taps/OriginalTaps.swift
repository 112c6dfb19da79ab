import Forwarding
import Recordings
import Transcoder

/// Taps on what publishers sent.
///
/// Video that was re-encoded for viewers is tapped as it arrived; everything else is tapped as viewers get it.
struct OriginalTaps: ProgrammeTaps {
    let originals: OriginalPictures
    let viewers: WorkerTaps

    /// Opens a tap on the original, or on what viewers get if there is no original or it cannot be opened.
    func open(
        _ source: ProgrammeSource, into input: InputID, ended: @escaping @Sendable (TapID) -> Void
    ) -> TapID? {
        guard let picture = picture(of: source) else {
            return viewers.open(source, into: input, ended: ended)
        }
        let tap = viewers.numbers.next()
        guard picture.open(tap, into: input, ended: ended) else {
            return viewers.open(source, into: input, ended: ended)
        }
        return tap
    }

    func close(_ tap: TapID, of source: ProgrammeSource) {
        guard picture(of: source)?.close(tap) != true else { return }
        viewers.close(tap, of: source)
    }

    /// Requests a key frame, except from an encoder by RTMP or SRT, which cannot be asked.
    func demandKeyFrame(_ tap: TapID, of source: ProgrammeSource) {
        guard picture(of: source)?.has(tap) != true else { return }
        viewers.demandKeyFrame(tap, of: source)
    }

    /// The original of a source; nil unless it is the video of an ingest session that was re-encoded.
    private func picture(of source: ProgrammeSource) -> OriginalPicture? {
        guard source.mid == IngestInlet.Sources.videoMid else { return nil }
        return source.session.flatMap { originals[$0] }
    }
}
