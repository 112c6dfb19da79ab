import Base
import Forwarding
import Peer
import Stage
import StoryFeed
import Transcoder
import Wire

/// Previews: the sources of streams' pictures, and the notification of new ones.
extension Node {
    /// Starts the desk for previews.
    func beginPreviews() async {
        await previews?.start { [weak self] stream, preview in await self?.tell(preview, of: stream) }
    }

    /// Updates the preview desk with the current picture of a stream, or with the card of one that sends sound only.
    func followPreview(of stream: StreamID) async {
        await previews?.update(stream, live.pictureSource(of: stream), card: live.card(of: stream))
    }

    /// Returns a stream's latest preview with its image files; nil for a stream that is backstage, which no viewer
    /// may see.
    package func preview(of stream: StreamID) async -> StoredPreview? {
        // Without the stream's state it is not known who may see the preview.
        guard let state = directory[stream]?.state, state != .backstage else { return nil }
        return await previews?[stream]
    }

    /// Counts of the transcoder and of previews; nil without a transcoder.
    package var transcoderCounters: (process: TranscoderStatistics, previews: PreviewDesk.Counters)? {
        get async {
            guard let transcoder, let previews else { return nil }
            return (transcoder.statistics, await previews.counters)
        }
    }

    /// Announces a new preview, to the feed and to the stream's followers.
    private func tell(_ preview: StreamPreview, of stream: StreamID) async {
        setPreview(
            FeedPreview(
                width: preview.width, height: preview.height, takenAt: preview.capturedAt,
                blurHash: preview.blurHash, url: preview.url), of: stream)
        await registry[stream]?.setPreview(preview)
    }
}
