import Base
import Forwarding
import Peer
import Stage
import StoryFeed
import Transcoder
import Wire

/// Previews: which streams have a picture, and who hears of a new one.
extension Node {
    func beginPreviews() async {
        await previews?.start { [weak self] stream, preview in await self?.tell(preview, of: stream) }
    }

    /// Tells the desk what there is to be seen of a stream now.
    func followPreview(of stream: StreamID) async {
        await previews?.update(stream, live.pictureSource(of: stream), card: live.card(of: stream))
    }

    /// A stream's latest preview, with its picture; nil in a backstage, which is shown to nobody.
    package func preview(of stream: StreamID) async -> StoredPreview? {
        // Of a stream that is forgotten nobody knows to whom it may be shown.
        guard let state = directory[stream]?.state, state != .backstage else { return nil }
        return await previews?[stream]
    }

    /// What was counted of the transcoder and of previews; nil where there are none.
    package var transcoderCounters: (process: TranscoderStatistics, previews: PreviewDesk.Counters)? {
        get async {
            guard let transcoder, let previews else { return nil }
            return (transcoder.statistics, await previews.counters)
        }
    }

    private func tell(_ preview: StreamPreview, of stream: StreamID) async {
        setPreview(
            FeedPreview(
                width: preview.width, height: preview.height, takenAt: preview.capturedAt,
                blurHash: preview.blurHash, url: preview.url), of: stream)
        await registry[stream]?.setPreview(preview)
    }
}
