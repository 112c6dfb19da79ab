import Base
import Peer
import Wire

/// Somebody on stage, as whoever composes a picture of all has to know them.
package struct ComposedSpeaker: Equatable, Sendable {
    /// Names a place in the picture.
    package struct ID: Hashable, Sendable {
        /// Who is shown.
        package let session: SessionID
        /// Of a shared screen; nil for the person.
        package let screen: String?
    }

    /// The same as long as the place in the picture is.
    package let id: ID
    /// For the label.
    package let participant: ParticipantID
    /// Nil where none is published.
    package let video: PublishedTrack?
    /// Nil where none is published.
    package let audio: PublishedTrack?
    /// Whether the camera is on, and sends.
    package let hasPicture: Bool
    /// By the audio level, with some delay.
    package let isSpeaking: Bool
    /// Grows with each who came; whoever came first stands first.
    package let arrival: Int

    /// A shared screen has a place of its own beside its owner's.
    package var isScreen: Bool { id.screen != nil }
}

/// Composed programmes: everybody on stage in one picture, made elsewhere.
extension StageRoom {
    /// With fewer on stage their packets themselves are the programme.
    static let composedFrom = 2

    /// Tells who is to be composed, where that changed.
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

    /// How far the way is from a composition to the packets of the only one who is left.
    ///
    /// That one is composed alone for a moment: viewers change over to a picture that is as new as a key frame can be.
    enum Handover: Equatable, Sendable {
        case none
        case wanted
        /// A key frame was asked for.
        case until(MonotonicTime)
    }

    /// A key frame takes so long to come.
    private static let handoverTime = Duration.milliseconds(400)

    /// Takes the next step of a handover.
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

    /// Takes in what was composed, which viewers get as long as there is any need.
    ///
    /// Nothing means that it is not, or no longer, there.
    package mutating func setComposed(_ tracks: [PublishedTrack]) -> [Effect] {
        composedTracks = tracks
        return choose()
    }

    /// Everybody who sent anything since they came, shared screens apart; who spoke last comes first.
    private func composedSpeakers() -> [ComposedSpeaker] {
        ranking.latest.filter { members[$0]?.hasSent == true }.flatMap { session -> [ComposedSpeaker] in
            guard let member = members[session], let participant = layout.participant(of: session) else {
                return []
            }
            // Guests stand behind all others, whoever of them comes back meanwhile.
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
