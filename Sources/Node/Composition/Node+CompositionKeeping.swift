import Base
import Forwarding
import Net
import Stage
import StoryFeed
import Transcoder

/// When compositions begin and end that could go on: what nobody looks at is not composed.
extension Node {
    /// A composition that nobody needs is kept for so long: people leave and come back.
    private static let patience = Duration.seconds(5)
    /// One that nobody watches, for so long: whoever swipes comes back sooner.
    private static let unwatchedPatience = Duration.seconds(10)

    /// Whether anybody would see a stream's composition: a viewer, connected or not yet, or a recording.
    ///
    /// Those who come see who speaks, from the cache and so at once, and the composition as soon as it is there.
    func isWatched(_ stream: StreamID) -> Bool {
        streams[stream]?.audience.isEmpty == false || feedDesk.audience.isWatched(stream)
            || directory[stream]?.isRecording == true
    }

    /// Ends compositions that nobody needed for a while, and begins again what could not begin.
    func keepCompositions(at now: MonotonicTime) {
        for (stream, programme) in compositions {
            if rooms[stream] == nil { endComposition(of: stream) }
            if let since = programme.idleSince, now >= since + Self.patience {
                endComposition(of: stream)
            }
            if programme.job == nil, !programme.speakers.isEmpty { beginComposition(of: stream) }
            rest(stream, at: now)
        }
        for (stream, speakers) in waitingCompositions {
            if rooms[stream] == nil {
                waitingCompositions[stream] = nil
            } else if hasRoomForComposition() {
                compose(speakers, in: stream)
            }
        }
        for (stream, speakers) in restingCompositions {
            if rooms[stream] == nil {
                restingCompositions[stream] = nil
            } else if isWatched(stream) {
                compose(speakers, in: stream)
            }
        }
    }

    /// Ends a stream's composition for as long as nobody watches it.
    private func rest(_ stream: StreamID, at now: MonotonicTime) {
        guard let programme = compositions[stream], !programme.speakers.isEmpty else { return }
        guard !isWatched(stream) else {
            compositions[stream]?.unwatchedSince = nil
            return
        }
        let since = programme.unwatchedSince ?? now
        compositions[stream]?.unwatchedSince = since
        guard now >= since + Self.unwatchedPatience else { return }
        log.info("composition.rests", ["stream": stream])
        if let effects = rooms[stream]?.setComposed([]) { perform(effects, in: stream) }
        restingCompositions[stream] = compositions[stream]?.speakers
        endComposition(of: stream)
    }

    /// How compositions do that go on now, how many wait for room, how many for somebody who watches, and how many were
    /// lost with the process so far.
    package var compositionCounters: (statuses: [CompositionStatus], waiting: Int, resting: Int, lost: UInt64)
    {
        (
            compositions.values.filter { $0.job != nil }.map(\.status), waitingCompositions.count,
            restingCompositions.count, compositionsLost
        )
    }
}
