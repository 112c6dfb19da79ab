import Base
import Forwarding
import Peer
import Stage
import StoryFeed
import Transcoder
import Wire

/// Previews: which streams have a picture, and who hears of a new one.
extension Node {
    func beginPreviews() {
        guard let previews else { return }
        launching = Task { [weak self] in
            await previews.start { [weak self] stream, preview in await self?.tell(preview, of: stream) }
        }
    }

    /// Has previews made that are due.
    func advancePreviews() async {
        await previews?.advance(with: pictureSources, cards: cards)
    }

    /// A stream's latest preview, with its picture.
    package func preview(of stream: StreamID) async -> StoredPreview? {
        await previews?[stream]
    }

    /// What was counted of the transcoder and of previews; nil where there are none.
    package var transcoderCounters: (process: TranscoderStatistics, previews: PreviewDesk.Counters)? {
        get async {
            guard let transcoder, let previews else { return nil }
            return (transcoder.statistics, await previews.counters)
        }
    }

    /// What viewers see of each stream: everybody, or whoever speaks, where that is the programme, or its source.
    private var pictureSources: [StreamID: ProgrammeSource] {
        var sources: [StreamID: ProgrammeSource] = [:]
        for (stream, record) in streams where record.isLive {
            sources[stream] = source(.video, of: stream, record)
        }
        return sources
    }

    /// Of live streams that send no picture.
    private var cards: [StreamID: CardRequest] {
        var cards: [StreamID: CardRequest] = [:]
        for (stream, record) in streams {
            guard record.isLive, let source = record.publisher.flatMap({ sessions[$0] }),
                !source.plan.sources.contains(where: { $0.kind == .video }),
                rooms[stream]?.programmeTrack(.video) == nil
            else { continue }
            let about = directory[stream]
            cards[stream] = CardRequest(
                stream: stream.description, title: about?.details.title ?? stream.description,
                host: about?.hostName ?? source.request.name ?? "")
        }
        return cards
    }

    private func tell(_ preview: StreamPreview, of stream: StreamID) async {
        setPreview(
            FeedPreview(
                width: preview.width, height: preview.height, takenAt: preview.capturedAt,
                blurHash: preview.blurHash, url: preview.url), of: stream)
        await hosts[stream]?.setPreview(preview)
    }
}
