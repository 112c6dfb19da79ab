import Base
import TestSupport
import Testing

@testable import StoryFeed

/// A few viewers with several sessions each say anything at all while the list changes.
///
/// `World` believes nothing: it carries the directives out one by one on slots of its own and looks at every step.
@Suite struct FeedProperties {
    private struct Slots {
        let viewer: FeedViewer
        var streams: [FeedSlot: (stream: StreamID, quality: FeedQuality)] = [:]
        var isPlayer = false

        var count: Int { isPlayer ? 1 : streams.count }
        var full: StreamID? { streams.values.first { $0.quality == .full }?.stream }
    }

    private struct World {
        var random: SeededGenerator
        var rig = FeedRig { $0.rescoreInterval = .milliseconds(500) }
        var audience: FeedAudience
        var sessions: [SessionID: Slots] = [:]
        var lastSession: UInt64 = 0
        /// Viewer and stream that are kept apart.
        var forbidden: Set<[String]> = []
        let viewers = ["ann", "bob", "cem"].compactMap { ParticipantID($0) }.map(FeedViewer.named)

        init(seed: UInt64) {
            random = SeededGenerator(seed: seed)
            var settings = FeedAudience.Configuration()
            // Most floods are let through, or nothing would happen.
            settings.session.messageInterval = .milliseconds(seed % 4 == 0 ? 50 : 0)
            audience = FeedAudience(settings)
        }

        var scene: FeedScene {
            let forbidden = forbidden
            return FeedScene(feed: rig.feed, now: rig.now) { viewer, stream in
                !forbidden.contains(["\(viewer)", "\(stream)"])
            }
        }

        func maySee(_ viewer: FeedViewer, _ stream: StreamID) -> Bool {
            rig.feed.isLive(stream) && scene.maySee(viewer, stream)
        }

        mutating func chance(_ one: Int) -> Bool { Int.random(in: 0..<one, using: &random) == 0 }
        mutating func someStream() -> StreamID { FeedRig.id(Int.random(in: 1...9, using: &random)) }
        mutating func someSession() -> SessionID {
            FeedRig.sessionID(UInt64.random(in: 0...lastSession, using: &random))
        }

        mutating func someMessage() -> FeedMessage {
            let way: FeedDirection? = chance(3) ? (chance(2) ? .forward : .backward) : nil
            switch Int.random(in: 0..<5, using: &random) {
            case 0, 1: return .peek(someStream(), direction: way)
            case 2, 3: return .focus(someStream(), ahead: chance(2) ? someStream() : nil)
            default: return .release(chance(2) ? someStream() : nil)
            }
        }

        // MARK: Carrying out

        mutating func carryOut(_ directives: [FeedAudience.Directive]) {
            for directive in directives {
                guard let before = sessions[directive.session] else {
                    Issue.record("a directive for a session that is over: \(directive)")
                    continue
                }
                carryOut(directive, before)
                var counts: [FeedViewer: Int] = [:]
                for slots in sessions.values { counts[slots.viewer, default: 0] += slots.count }
                #expect(counts.values.allSatisfy { $0 <= 2 }, "\(directive)")
            }
        }

        private mutating func carryOut(_ directive: FeedAudience.Directive, _ before: Slots) {
            let id = directive.session
            switch directive.effect {
            case .attach(let slot, let stream, let quality):
                #expect(before.streams[slot] == nil)
                #expect(!before.streams.values.contains { $0.stream == stream })
                #expect(maySee(before.viewer, stream))
                if quality == .full { #expect(before.streams.isEmpty) }
                sessions[id]?.streams[slot] = (stream, quality)
            case .promote(let slot, let stream):
                #expect(before.streams[slot]?.stream == stream)
                #expect(before.streams[slot]?.quality == .preview)
                #expect(maySee(before.viewer, stream))
                sessions[id]?.streams[slot] = (stream, .full)
            case .release(let slot, let stream):
                #expect(before.streams[slot]?.stream == stream)
                sessions[id]?.streams[slot] = nil
            case .tell(.slots(let states, _)):
                #expect(states.count == before.streams.count)
                for state in states {
                    #expect(before.streams[state.slot]?.stream == state.stream)
                    #expect(before.streams[state.slot]?.quality == state.quality)
                }
            case .tell: break
            case .close:
                #expect(before.streams.isEmpty)
                sessions[id] = nil
            }
        }

        // MARK: Steps

        mutating func step() throws {
            switch Int.random(in: 0..<16, using: &random) {
            case 0: try changeList()
            case 1: try changeAccess()
            case 2, 3: begin()
            case 4:
                let id = someSession()
                carryOut(audience.end(id))
                sessions[id] = nil
            case 5...7:
                rig.pass(.milliseconds(Int.random(in: 0...400, using: &random)))
                _ = rig.feed.advance(to: rig.now)
                carryOut(audience.advance(in: scene))
            default: say()
            }
        }

        private mutating func changeList() throws {
            let stream = someStream()
            guard chance(2), let departure = rig.feed.end(stream) else {
                rig.feed.setViewers(stream, Int.random(in: 0...999, using: &random))
                let number = Int(stream.description.dropFirst()) ?? 0
                if try !rig.feed.goLive(FeedRig.item(number)).isEmpty {
                    carryOut(audience.streamAppeared(in: scene))
                }
                return
            }
            carryOut(audience.streamEnded(departure, in: scene))
        }

        private mutating func changeAccess() throws {
            let stream = someStream()
            let viewer = viewers[Int.random(in: 0..<viewers.count, using: &random)]
            let pair = ["\(viewer)", "\(stream)"]
            if forbidden.remove(pair) == nil { forbidden.insert(pair) }
            carryOut(audience.accessChanged(to: stream, in: scene))
        }

        private mutating func begin() {
            lastSession += 1
            let id = FeedRig.sessionID(lastSession)
            let viewer = viewers[Int.random(in: 0..<viewers.count, using: &random)]
            sessions[id] = Slots(viewer: viewer)
            if chance(4) {
                // It plays once the others have made way.
                carryOut((try? audience.beginPlayer(id, viewer: viewer)) ?? [])
                sessions[id]?.isPlayer = true
                return carryOut([])
            }
            let wish = chance(2) ? someStream() : nil
            let preload: FeedPreload = chance(2) ? .eager : .onSwipe
            let directives = try? audience.begin(id, viewer: viewer, preload: preload, on: wish, in: scene)
            carryOut(directives ?? [])
        }

        private mutating func say() {
            let id = someSession()
            let message = someMessage()
            let request: UInt32? = chance(2) ? .random(in: 1...9, using: &random) : nil
            carryOut(audience.receive(message, request: request, from: id, in: scene))
            let before = audience.session(id)?.slots
            let again = audience.receive(message, request: request, from: id, in: scene)
            #expect(audience.session(id)?.slots == before)
            for directive in again {
                switch directive.effect {
                case .tell(.refused(_, _, _, let told)): #expect(told == request)
                case .tell(.slots(_, let told)) where request != nil:
                    #expect(told == audience.session(id)?.request)
                    carryOut([directive])
                default: Issue.record("saying it again did something: \(directive)")
                }
            }
        }

        // MARK: What always holds

        func check() {
            for (id, slots) in sessions where !slots.isPlayer {
                let session = audience.session(id)
                #expect(session?.focusedStream == slots.full)
                #expect(session?.attachedCount == slots.streams.count)
                for stream in slots.streams.values.map(\.stream) { #expect(maySee(slots.viewer, stream)) }
                let room =
                    2 - sessions.values.filter { $0.viewer == slots.viewer }.reduce(0) { $0 + $1.count }
                if slots.full == nil, room > 0 {
                    #expect(!rig.feed.streams.contains { maySee(slots.viewer, $0) }, "nothing plays")
                }
            }
            for viewer in viewers {
                let held = sessions.values.filter { $0.viewer == viewer }.reduce(0) { $0 + $1.count }
                #expect(audience.attachedCount(of: viewer) == held)
            }
            #expect(audience.count == sessions.count)
        }
    }

    @Test(arguments: 0..<100)
    func `hold for all messages and changes in any order`(seed: UInt64) throws {
        var world = World(seed: seed)
        for _ in 0..<400 {
            try world.step()
            world.check()
        }
    }
}
