import Forwarding
import Recordings
import Transcoder

/// Taps on what publishers sent: pictures that were made anew for viewers come as they were before that, all else as
/// viewers get it.
struct OriginalTaps: ProgrammeTaps {
    let originals: OriginalPictures
    let viewers: WorkerTaps

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

    /// An encoder cannot be asked for one.
    func demandKeyFrame(_ tap: TapID, of source: ProgrammeSource) {
        guard picture(of: source)?.has(tap) != true else { return }
        viewers.demandKeyFrame(tap, of: source)
    }

    private func picture(of source: ProgrammeSource) -> OriginalPicture? {
        guard source.mid == IngestInlet.Sources.videoMid else { return nil }
        return source.session.flatMap { originals[$0] }
    }
}
