import Base
import Peer

/// A participant or a shared screen on stage, as the composer needs to know it.
package struct ComposedSpeaker: Equatable, Sendable {
    /// Identifies a place in the picture.
    package struct ID: Hashable, Sendable {
        /// The session that is shown.
        package let session: SessionID
        /// The MID of a shared screen; nil for the participant's camera.
        package let screen: String?
    }

    /// Stays the same while the participant keeps the place.
    package let id: ID
    /// The identity shown in the label.
    package let participant: ParticipantID
    /// Nil if no video is published.
    package let video: PublishedTrack?
    /// Nil if no audio is published.
    package let audio: PublishedTrack?
    /// Whether the camera is on and sends media.
    package let hasPicture: Bool
    /// Follows the audio level with some delay.
    package let isSpeaking: Bool
    /// Position in order of arrival; the earliest participant is first.
    package let arrival: Int

    /// Whether it is a shared screen, which has a separate place beside its owner's.
    package var isScreen: Bool { id.screen != nil }
}

/// Composed programmes: all participants on stage in one picture, which the transcoder makes.
extension StageRoom {
    /// Minimum number of participants for a composition; with fewer, their packets are the programme.
    static let composedFrom = 2

    /// Updates the list of participants to compose, and returns an effect if it has changed.
    mutating func composition() -> [Effect] {
        let speakers = programme == .composed || guest != nil ? composedSpeakers() : []
        let isNeeded = Set(speakers.map(\.participant)).count >= Self.composedFrom
        if isNeeded { handover = .none }
        if !isNeeded, isComposed, !speakers.isEmpty, handover == .none { handover = .wanted }
        if speakers.isEmpty || composedTracks.isEmpty { handover = .none }
        let wanted = isNeeded || handover != .none ? speakers : []
        guard wanted != toldSpeakers else { return [] }
        toldSpeakers = wanted
        return [.compose(wanted)]
    }

    /// The progress of the change from a composition to the packets of the only remaining participant.
    ///
    /// That participant is composed alone for a moment, so that viewers change to a picture that begins with a recent
    /// key frame.
    enum Handover: Equatable, Sendable {
        case none
        case wanted
        /// A key frame was requested; the composition ends at this time.
        case until(MonotonicTime)
    }

    /// Time for a requested key frame to arrive.
    private static let handoverTime = Duration.milliseconds(400)

    /// Performs the next step of a handover, if it is due.
    mutating func advanceHandover(to now: MonotonicTime) -> [Effect] {
        switch handover {
        case .none: return []
        case .wanted:
            handover = .until(now + Self.handoverTime)
            return toldSpeakers.compactMap(\.video).map { .refresh($0) }
        case .until(let end):
            guard now >= end else { return [] }
            handover = .none
            toldSpeakers = []
            return [.compose([])] + choose()
        }
    }

    /// Whether viewers get the composition now.
    var isComposed: Bool { !toldSpeakers.isEmpty && !composedTracks.isEmpty }

    /// Sets the tracks of the composition, which viewers get while one is needed.
    ///
    /// An empty list means that there is no composition yet, or no longer.
    package mutating func setComposed(_ tracks: [PublishedTrack]) -> [Effect] {
        composedTracks = tracks
        return choose()
    }

    /// All participants who have sent media, each followed by their shared screens; the latest speaker is first.
    private func composedSpeakers() -> [ComposedSpeaker] {
        ranking.latest.filter { members[$0]?.hasSent == true }.flatMap { session -> [ComposedSpeaker] in
            guard let member = members[session], let participant = layout.participant(of: session) else {
                return []
            }
            // Guests come after all others, even if an own participant rejoins later.
            let arrival =
                (layout.sessions.firstIndex(of: session) ?? 0) + (member.isGuest ? Self.maximumSessions : 0)
            let active = layout.activeSources(.video).filter { $0.session == session }
            let screens = active.filter { layout.isScreen($0) }
            let cameras = member.tracks.values.filter { track in
                track.plan.kind == .video
                    && !layout.isScreen(.init(session: session, mid: track.plan.mid))
            }
            let camera = cameras.min { $0.plan.mid < $1.plan.mid }
            let microphones = member.tracks.values.filter { $0.plan.kind == .audio }
            let isSending = active.contains { $0.mid == camera?.plan.mid }
            let person = ComposedSpeaker(
                id: .init(session: session, screen: nil), participant: participant, video: camera,
                audio: microphones.min { $0.plan.mid < $1.plan.mid },
                hasPicture: isSending && !mute(of: participant).video,
                isSpeaking: ranking.isSpeaking(session), arrival: arrival)
            return [person]
                + screens.compactMap { source in
                    member.tracks[source.mid].map { track in
                        ComposedSpeaker(
                            id: .init(session: session, screen: source.mid), participant: participant,
                            video: track, audio: nil, hasPicture: true, isSpeaking: false,
                            arrival: arrival)
                    }
                }
        }
    }
}
