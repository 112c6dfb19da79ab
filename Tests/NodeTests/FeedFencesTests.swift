import Base
import StoryFeed
import TestSupport
import Testing

@testable import Node

@Suite struct FencesBetweenWorkers {
    private typealias Directive = FeedAudience.Directive

    private let stream: StreamID
    private let ann: FeedViewer
    /// Ann's on workers 0, 1 and 2, and somebody else's on worker 1.
    private let old: SessionID
    private let new: SessionID
    private let third: SessionID
    private let stranger: SessionID
    private var fences = FeedFences()

    init() throws {
        var random = SeededGenerator(seed: 1)
        stream = try #require(StreamID("s1"))
        ann = .named(try #require(ParticipantID("ann")))
        (old, new) = (SessionID(using: &random), SessionID(using: &random))
        (third, stranger) = (SessionID(using: &random), SessionID(using: &random))
    }

    /// Where Ann's sessions live.
    private var anns: Set<Int> = [0, 1, 2]

    private func place(_ id: SessionID) -> FeedFences.Place? {
        guard let worker = [old, new, third].firstIndex(of: id) else {
            return FeedFences.Place(worker: 1, viewer: .anonymous(id), others: [1])
        }
        return FeedFences.Place(worker: worker, viewer: ann, others: anns)
    }

    private var names: [SessionID: String] { [old: "old", new: "new", third: "third", stranger: "stranger"] }

    private func words(_ steps: [FeedFences.Step]) -> [String] {
        steps.map { step in
            switch step {
            case .fence(let number, let worker): "fence \(number) on \(worker)"
            case .perform(let directive, _):
                switch directive.effect {
                case .attach: "\(names[directive.session] ?? "?") attach"
                case .release: "\(names[directive.session] ?? "?") release"
                case .promote: "\(names[directive.session] ?? "?") promote"
                case .tell: "\(names[directive.session] ?? "?") told"
                case .close: "\(names[directive.session] ?? "?") close"
                }
            }
        }
    }

    private mutating func append(_ directives: [(SessionID, FeedEffect)]) -> [String] {
        words(
            fences.append(
                directives.map { Directive(session: $0.0, effect: $0.1) }, requested: nil, place: place))
    }

    private var attach: FeedEffect { .attach(.first, stream, .full) }
    private var release: FeedEffect { .release(.first, stream) }

    @Test mutating func `hold what is attached until another worker has let go`() {
        anns = [0, 1]
        let first = append([
            (old, release), (old, .tell(.replaced)), (old, .close), (new, attach), (new, .tell(.empty)),
            (stranger, attach),
        ])
        #expect(first == ["old release", "old told", "old close", "fence 1 on 0", "stranger attach"])
        // What comes later for the one who waits comes later.
        #expect(append([(new, .promote(.first, stream)), (stranger, release)]) == ["stranger release"])
        #expect(words(fences.pass(1)) == ["new attach", "new told", "new promote"])
        #expect(fences.waiting == 0)
        #expect(words(fences.pass(1)) == [])
    }

    @Test mutating func `are not needed within one worker`() {
        anns = [0]
        #expect(append([(old, release), (old, attach)]) == ["old release", "old attach"])
        #expect(
            append([(stranger, release), (stranger, attach)]) == ["stranger release", "stranger attach"])
    }

    @Test mutating func `what a third session attaches meanwhile waits as well`() {
        #expect(
            append([(old, release), (new, attach)]) == ["old release", "fence 1 on 0", "fence 2 on 2"])
        #expect(append([(new, release), (third, attach)]) == [])
        #expect(words(fences.pass(1)) == [])
        // The second one takes and lets go first, and only then is it the third one's turn.
        #expect(words(fences.pass(2)) == ["new attach", "new release", "fence 3 on 0", "fence 4 on 1"])
        #expect(words(fences.pass(4)) == [])
        #expect(words(fences.pass(3)) == ["third attach"])
        #expect(fences.waiting == 0)
    }

    @Test mutating func `fences keep the order however many wait, and waiting ones set no more`() {
        let limit = FeedFences.usualLimit
        anns = [0, 1]
        _ = append([(old, release), (new, attach)])
        for _ in 1..<limit {
            #expect(fences.hasRoom(for: ann))
            #expect(append([(new, .tell(.empty))]) == [])
        }
        #expect(fences.waiting == limit)
        #expect(!fences.hasRoom(for: ann))
        #expect(fences.hasRoom(for: .anonymous(stranger)), "whose directives do not wait")
        // What the server does to them comes after all the rest.
        #expect(append([(new, release), (stranger, attach)]) == ["stranger attach"])
        let steps = words(fences.pass(1))
        #expect(steps.count == limit + 1)
        #expect(steps.first == "new attach" && steps.last == "new release")
        #expect(fences.hasRoom(for: ann) && fences.waiting == 0)
    }

    /// Nobody has set a fence for them yet, and what they attach may be released on another worker.
    @Test mutating func `are set however many wait`() {
        fences = FeedFences(limit: 0)
        #expect(append([(old, release), (new, attach)]) == ["old release", "fence 1 on 0", "fence 2 on 2"])
        #expect(words(fences.pass(1)) == [])
        #expect(words(fences.pass(2)) == ["new attach"])
    }

    @Test(arguments: 1...20) mutating func `never let two workers hold three of one viewer's streams`(
        seed: UInt64
    ) {
        var random = SeededGenerator(seed: seed)
        var audience = FeedAudience()
        var feed = StoryFeed(StoryFeed.Configuration(tag: 1))
        for number in 0..<4 {
            guard let id = StreamID("s\(number)") else { return }
            _ = try? feed.goLive(FeedItem(id: id, startedAt: WallTime(milliseconds: Int64(number))))
        }
        var now = MonotonicTime(nanoseconds: 1)
        var sessions: [SessionID] = []
        var workers: [SessionID: Int] = [:]
        // What was posted to each worker and is not done yet, and what each holds.
        var mailboxes: [[FeedFences.Step]] = [[], [], []]
        var held: [SessionID: Set<FeedSlot>] = [:]
        var most = 0
        for _ in 0..<400 {
            now = now + .milliseconds(60)
            let scene = FeedScene(feed: feed, now: now) { _, _ in true }
            var directives: [Directive] = []
            if sessions.isEmpty || Int.random(in: 0..<6, using: &random) == 0 {
                let id = SessionID(using: &random)
                workers[id] = Int.random(in: 0..<3, using: &random)
                sessions.append(id)
                directives =
                    (try? audience.begin(id, viewer: ann, preload: .onSwipe, on: nil, in: scene)) ?? []
            } else if let id = sessions.randomElement(using: &random),
                let target = StreamID("s\(Int.random(in: 0..<4, using: &random))")
            {
                directives = audience.receive(
                    Bool.random(using: &random) ? .peek(target, direction: nil) : .focus(target, ahead: nil),
                    from: id, in: scene)
            }
            var steps = fences.append(directives, requested: nil) { [workers, ann] in
                FeedFences.Place(worker: workers[$0] ?? 0, viewer: ann, others: Set(workers.values))
            }
            // Each worker does as much as it likes.
            while true {
                for step in steps {
                    switch step {
                    case .fence(_, let worker): mailboxes[worker].append(step)
                    case .perform(let directive, _): mailboxes[workers[directive.session] ?? 0].append(step)
                    }
                }
                steps = []
                let busy = mailboxes.indices.filter { !mailboxes[$0].isEmpty }
                guard let worker = busy.randomElement(using: &random),
                    Int.random(in: 0..<4, using: &random) > 0
                else { break }
                switch mailboxes[worker].removeFirst() {
                case .fence(let number, _): steps = fences.pass(number)
                case .perform(let directive, _):
                    switch directive.effect {
                    case .attach(let slot, _, _): held[directive.session, default: []].insert(slot)
                    case .release(let slot, _): held[directive.session]?.remove(slot)
                    case .promote, .tell, .close: break
                    }
                }
                most = max(most, held.values.map(\.count).reduce(0, +))
            }
        }
        #expect(most == 2)
    }
}
