import Base
import Peer
import Wire

/// Which track each slot of a stage's sessions carries.
///
/// Audio slots get the loudest, video slots whom their owner pinned and then who spoke last; nobody gets oneself. Who
/// stays in sight stays in the same slot. Pure, and the whole truth: what changed since the last call comes out of
/// `takeChanges`.
package struct StageLayout: Sendable {
    /// One published m-line.
    package struct Source: Hashable, Sendable {
        /// That publishes it.
        package let session: SessionID
        /// Of the publisher's m-line.
        package let mid: String

        package init(session: SessionID, mid: String) {
            self.session = session
            self.mid = mid
        }
    }

    /// What a slot is to do.
    package struct Assignment: Equatable, Sendable {
        /// Nil for a slot that is to carry nothing.
        package var source: Source?
        /// Nil for the best layer; of video.
        package var maximumHeight: Int?
        /// Whether its owner shows it; nothing is sent to one that is not shown.
        package var isVisible = true
    }

    /// What one slot is to do from now on.
    package struct Change: Equatable, Sendable {
        /// Whose slot it is.
        package let session: SessionID
        /// Of the slot's m-line.
        package let mid: String
        /// All of it, not only what is new.
        package let assignment: Assignment
    }

    /// Which pictures of a session come before its others, where its path does not take the best of all.
    package struct Favour: Equatable, Sendable {
        /// Whose slots they are.
        package let session: SessionID
        /// Of the slots' m-lines, in the order of the offer; none where all are alike.
        package let mids: [String]
    }

    private struct Slot: Sendable {
        let mid: String
        let kind: MediaKind
        var pin: ParticipantID?
        var chosenHeight: Int?
        var assignment = Assignment()
        /// As last given out.
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
        /// Of the slots that come first.
        var favoured: [String] = []
        /// As last given out.
        var toldFavoured: [String] = []
    }

    /// Slots of one session that are used; the rest stays empty.
    package static let maximumSlots = 32

    private var members: [SessionID: Member] = [:]
    /// In the order in which they came.
    private var order: [SessionID] = []

    package init() {}

    /// In the order in which they came.
    package var sessions: [SessionID] { order }

    /// A session comes onto the stage, behind all others; one that is there already stays as it is.
    package mutating func add(_ session: SessionID, of participant: ParticipantID, with plan: SessionPlan) {
        add(session, of: participant, publishing: plan.sources, into: plan.slots)
    }

    /// - Parameter slots: none for whoever is only seen and heard here.
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

    /// A session leaves the stage, if it is there.
    package mutating func remove(_ session: SessionID) {
        guard members.removeValue(forKey: session) != nil else { return }
        order.removeAll { $0 == session }
    }

    /// Nil for a session that is not there.
    package func participant(of session: SessionID) -> ParticipantID? { members[session]?.participant }

    /// Media began or ceased to come on a published m-line.
    package mutating func setActive(_ isActive: Bool, _ source: Source) {
        guard let index = members[source.session]?.publications.firstIndex(where: { $0.mid == source.mid })
        else { return }
        members[source.session]?.publications[index].isActive = isActive
    }

    /// Whether the source is a participant's second video: a shared screen.
    package func isScreen(_ source: Source) -> Bool {
        guard let videos = members[source.session]?.publications.filter({ $0.kind == .video }) else {
            return false
        }
        return videos.first?.mid != source.mid && videos.contains { $0.mid == source.mid }
    }

    // MARK: Wishes

    /// Shows a participant in one video slot for as long as nothing else is wished; nil for whoever speaks.
    package mutating func pin(_ participant: ParticipantID?, in mid: String, of session: SessionID) {
        guard let member = members[session], participant != member.participant,
            let index = member.slots.firstIndex(where: { $0.mid == mid && $0.kind == .video })
        else { return }
        for other in member.slots.indices where participant != nil && member.slots[other].pin == participant {
            members[session]?.slots[other].pin = nil
        }
        members[session]?.slots[index].pin = participant
    }

    /// - Parameter height: nil for what fits the number of slots.
    package mutating func limit(_ mid: String, of session: SessionID, to height: Int?) {
        guard let index = index(mid, of: session) else { return }
        members[session]?.slots[index].chosenHeight = height.map { min(max($0, 1), 16_384) }
    }

    /// A slot that nobody sees is sent nothing, and keeps its source.
    package mutating func setVisible(_ isVisible: Bool, _ mid: String, of session: SessionID) {
        guard let index = index(mid, of: session) else { return }
        members[session]?.slots[index].assignment.isVisible = isVisible
    }

    private func index(_ mid: String, of session: SessionID) -> Int? {
        members[session]?.slots.firstIndex { $0.mid == mid }
    }

    // MARK: Choosing

    /// Chooses anew, and gives out what is no longer as it was.
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

    /// What is pinned, and where nothing is, a shared screen or who spoke last.
    private static func favoured(of member: Member, _ pictures: [Source]) -> [String] {
        let filled = member.slots.filter { $0.kind == .video && $0.assignment.source != nil }
        guard filled.count > 1 else { return [] }
        let pinned = filled.filter { $0.pin != nil }
        guard pinned.isEmpty else { return pinned.map(\.mid) }
        let first = pictures.first { source in filled.contains { $0.assignment.source == source } }
        return filled.filter { $0.assignment.source == first }.map(\.mid)
    }

    /// Gives out which pictures come first, as of the last choice, where that is no longer as it was.
    package mutating func takeFavours() -> [Favour] {
        var favours: [Favour] = []
        for session in order {
            guard let member = members[session], member.favoured != member.toldFavoured else { continue }
            members[session]?.toldFavoured = member.favoured
            favours.append(Favour(session: session, mids: member.favoured))
        }
        return favours
    }

    /// Shared screens first, then cameras by who spoke last.
    private func videoOrder(_ ranking: SpeakerRanking) -> [Source] {
        let all = ranking.latest.flatMap { sources(of: $0, .video) }
        return all.filter(isScreen) + all.filter { !isScreen($0) }
    }

    /// What a session sends just now.
    private func sources(of session: SessionID, _ kind: MediaKind) -> [Source] {
        guard let publications = members[session]?.publications else { return [] }
        return publications.filter { $0.kind == kind && $0.isActive }
            .map { Source(session: session, mid: $0.mid) }
    }

    /// Everything of a kind that is sent just now.
    package func activeSources(_ kind: MediaKind) -> [Source] { order.flatMap { sources(of: $0, kind) } }

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
        // Who is chosen and in sight stays where they are.
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

    /// Of a picture among so many; the whole grid is no larger than a screen.
    private static func usualHeight(_ kind: MediaKind, slots: Int) -> Int? {
        guard kind == .video, slots > 1 else { return nil }
        return slots <= 4 ? 540 : 360
    }

    /// What the slots of a session carry, in the order of its offer.
    package func slots(of session: SessionID) -> [(mid: String, kind: MediaKind, source: Source?)] {
        (members[session]?.slots ?? []).map { ($0.mid, $0.kind, $0.told.source) }
    }
}
