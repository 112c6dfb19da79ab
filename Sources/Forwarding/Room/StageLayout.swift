import Base
import Peer

/// Decides which track each slot of a stage's sessions carries.
///
/// Audio slots carry the loudest sessions. Video slots carry the participants that their owner pinned, then those who
/// spoke last. No session gets its owner's media. A source that stays visible keeps its slot. The type is pure and
/// holds the complete state: `takeChanges` returns the differences from the last call.
package struct StageLayout: Sendable {
    /// One published m-line.
    package struct Source: Hashable, Sendable {
        /// The session that publishes it.
        package let session: SessionID
        /// The MID of the publisher's m-line.
        package let mid: String

        package init(session: SessionID, mid: String) {
            self.session = session
            self.mid = mid
        }
    }

    /// What a slot should carry, and how.
    package struct Assignment: Equatable, Sendable {
        /// Nil for an empty slot.
        package var source: Source?
        /// Maximum height of the video, in pixels; nil for the best layer.
        package var maximumHeight: Int?
        /// Whether the owner's client shows the slot; hidden slots are sent nothing.
        package var isVisible = true
    }

    /// The new assignment of one slot.
    package struct Change: Equatable, Sendable {
        /// The session that has the slot.
        package let session: SessionID
        /// The MID of the slot's m-line.
        package let mid: String
        /// The complete assignment, not only the difference.
        package let assignment: Assignment
    }

    /// The pictures of a session that take priority if its path cannot carry the best quality of all.
    package struct Favour: Equatable, Sendable {
        /// The session that has the slots.
        package let session: SessionID
        /// MIDs of the slots' m-lines, in the order of the offer; empty if all pictures are equal.
        package let mids: [String]
    }

    private struct Slot: Sendable {
        let mid: String
        let kind: MediaKind
        var pin: ParticipantID?
        var chosenHeight: Int?
        var assignment = Assignment()
        /// As last returned by `takeChanges`.
        var told = Assignment()
    }

    private struct Publication: Sendable {
        let mid: String
        let kind: MediaKind
        var isActive = false
    }

    private struct Member: Sendable {
        let participant: ParticipantID
        var slots: [Slot]
        var publications: [Publication]
        /// MIDs of the slots that take priority.
        var favoured: [String] = []
        /// As last returned by `takeFavours`.
        var toldFavoured: [String] = []
    }

    /// Maximum number of slots used per session; all others stay empty.
    package static let maximumSlots = 32

    private var members: [SessionID: Member] = [:]
    /// In order of arrival.
    private var order: [SessionID] = []

    package init() {}

    /// All sessions, in order of arrival.
    package var sessions: [SessionID] { order }

    /// Adds a session to the stage, after all others; does nothing for one that is there.
    package mutating func add(_ session: SessionID, of participant: ParticipantID, with plan: SessionPlan) {
        add(session, of: participant, publishing: plan.sources, into: plan.slots)
    }

    /// Adds a session with the given m-lines.
    /// - Parameter slots: empty for a guest, who is only seen and heard here.
    mutating func add(
        _ session: SessionID, of participant: ParticipantID, publishing sources: [SourcePlan],
        into slots: [SlotPlan] = []
    ) {
        guard members[session] == nil else { return }
        members[session] = Member(
            participant: participant,
            slots: slots.prefix(Self.maximumSlots).map { Slot(mid: $0.mid, kind: $0.kind) },
            publications: sources.map { Publication(mid: $0.mid, kind: $0.kind) })
        order.append(session)
    }

    /// Removes a session from the stage, if it is there.
    package mutating func remove(_ session: SessionID) {
        guard members.removeValue(forKey: session) != nil else { return }
        order.removeAll { $0 == session }
    }

    /// The owner of a session; nil for a session that is not on the stage.
    package func participant(of session: SessionID) -> ParticipantID? { members[session]?.participant }

    /// Notes whether media arrives on a published m-line.
    package mutating func setActive(_ isActive: Bool, _ source: Source) {
        guard let index = members[source.session]?.publications.firstIndex(where: { $0.mid == source.mid })
        else { return }
        members[source.session]?.publications[index].isActive = isActive
    }

    /// Whether a source is its session's second video m-line: a shared screen.
    package func isScreen(_ source: Source) -> Bool {
        guard let videos = members[source.session]?.publications.filter({ $0.kind == .video }) else {
            return false
        }
        return videos.first?.mid != source.mid && videos.contains { $0.mid == source.mid }
    }

    // MARK: Wishes

    /// Pins a participant to a video slot until the pin is changed; nil leaves the slot to the stage's choice.
    ///
    /// A participant can be pinned in one slot only, and never in their own session.
    package mutating func pin(_ participant: ParticipantID?, in mid: String, of session: SessionID) {
        guard let member = members[session], participant != member.participant,
            let index = member.slots.firstIndex(where: { $0.mid == mid && $0.kind == .video })
        else { return }
        for other in member.slots.indices where participant != nil && member.slots[other].pin == participant {
            members[session]?.slots[other].pin = nil
        }
        members[session]?.slots[index].pin = participant
    }

    /// Limits the height of a slot's video.
    /// - Parameter height: in pixels; nil for the default for the number of slots.
    package mutating func limit(_ mid: String, of session: SessionID, to height: Int?) {
        guard let index = index(mid, of: session) else { return }
        members[session]?.slots[index].chosenHeight = height.map { min(max($0, 1), 16_384) }
    }

    /// Notes whether a slot is shown; a hidden one is sent nothing and keeps its source.
    package mutating func setVisible(_ isVisible: Bool, _ mid: String, of session: SessionID) {
        guard let index = index(mid, of: session) else { return }
        members[session]?.slots[index].assignment.isVisible = isVisible
    }

    private func index(_ mid: String, of session: SessionID) -> Int? {
        members[session]?.slots.firstIndex { $0.mid == mid }
    }

    // MARK: Choosing

    /// Chooses the sources of all slots again, and returns the assignments that have changed.
    package mutating func takeChanges(_ ranking: SpeakerRanking) -> [Change] {
        let videos = videoOrder(ranking)
        let voices = ranking.loudest.compactMap { sources(of: $0, .audio).first }
        var changes: [Change] = []
        for session in order {
            guard var member = members[session] else { continue }
            let others: (Source) -> Bool = { [members] source in
                members[source.session]?.participant != member.participant
            }
            choose(.audio, voices.filter(others), for: &member)
            let pictures = videos.filter(others)
            choose(.video, pictures, for: &member)
            member.favoured = Self.favoured(of: member, pictures)
            for index in member.slots.indices where member.slots[index].told != member.slots[index].assignment
            {
                let slot = member.slots[index]
                member.slots[index].told = slot.assignment
                changes.append(Change(session: session, mid: slot.mid, assignment: slot.assignment))
            }
            members[session] = member
        }
        return changes
    }

    /// The slots that take priority: the pinned ones, or without a pin the one with a shared screen or the latest
    /// speaker.
    ///
    /// Hidden slots are sent nothing, so the priority is for those that are shown.
    private static func favoured(of member: Member, _ pictures: [Source]) -> [String] {
        let shown = member.slots.filter {
            $0.kind == .video && $0.assignment.isVisible && $0.assignment.source != nil
        }
        guard shown.count > 1 else { return [] }
        let pinned = shown.filter { $0.pin != nil }
        guard pinned.isEmpty else { return pinned.map(\.mid) }
        let first = pictures.first { source in shown.contains { $0.assignment.source == source } }
        return shown.filter { $0.assignment.source == first }.map(\.mid)
    }

    /// Returns the priorities that have changed, as of the last choice.
    package mutating func takeFavours() -> [Favour] {
        var favours: [Favour] = []
        for session in order {
            guard let member = members[session], member.favoured != member.toldFavoured else { continue }
            members[session]?.toldFavoured = member.favoured
            favours.append(Favour(session: session, mids: member.favoured))
        }
        return favours
    }

    /// All active videos: shared screens first, then cameras, the latest speaker first.
    private func videoOrder(_ ranking: SpeakerRanking) -> [Source] {
        let all = ranking.latest.flatMap { sources(of: $0, .video) }
        return all.filter(isScreen) + all.filter { !isScreen($0) }
    }

    /// The sources of a kind that a session sends now.
    private func sources(of session: SessionID, _ kind: MediaKind) -> [Source] {
        guard let publications = members[session]?.publications else { return [] }
        return publications.filter { $0.kind == kind && $0.isActive }
            .map { Source(session: session, mid: $0.mid) }
    }

    /// All sources of a kind that are sent now.
    package func activeSources(_ kind: MediaKind) -> [Source] { order.flatMap { sources(of: $0, kind) } }

    /// Assigns candidates, the most important first, to a member's slots of one kind.
    ///
    /// Pinned slots get their participants first. A candidate that already has a slot keeps it, and the rest fill the
    /// free slots.
    private func choose(_ kind: MediaKind, _ candidates: [Source], for member: inout Member) {
        let places = member.slots.indices.filter { member.slots[$0].kind == kind }
        guard !places.isEmpty else { return }
        var candidates = candidates
        var free: [Int] = []
        for place in places {
            let pinned = member.slots[place].pin.flatMap { pin in
                candidates.firstIndex { members[$0.session]?.participant == pin }
            }
            if let pinned {
                member.slots[place].assignment.source = candidates.remove(at: pinned)
            } else {
                free.append(place)
            }
        }
        var chosen = Array(candidates.prefix(free.count))
        // A chosen source that is already in a slot stays there.
        free.removeAll { place in
            guard let source = member.slots[place].assignment.source,
                let index = chosen.firstIndex(of: source)
            else { return false }
            chosen.remove(at: index)
            return true
        }
        for (index, place) in free.enumerated() {
            member.slots[place].assignment.source = chosen.indices.contains(index) ? chosen[index] : nil
        }
        for place in places {
            member.slots[place].assignment.maximumHeight =
                member.slots[place].chosenHeight ?? Self.usualHeight(kind, slots: places.count)
        }
    }

    /// Default height of a picture among `slots`, in pixels, so that the whole grid is no larger than a screen.
    private static func usualHeight(_ kind: MediaKind, slots: Int) -> Int? {
        guard kind == .video, slots > 1 else { return nil }
        return slots <= 4 ? 540 : 360
    }

    /// The sources in a session's slots, as last returned by `takeChanges`, in the order of its offer.
    package func slots(of session: SessionID) -> [(mid: String, kind: MediaKind, source: Source?)] {
        (members[session]?.slots ?? []).map { ($0.mid, $0.kind, $0.told.source) }
    }
}
