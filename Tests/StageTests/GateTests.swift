import Base
import TestSupport
import Testing

@testable import Stage

@Suite struct `A stream's gate` {
    private let gate = StageDetails.Gate(tier: "gold", freeSeconds: 10, unlock: "https://shop.example/gold")

    private func sender(
        _ name: String, _ authority: Stage.Sender.Authority, mayModerate: Bool = false,
        tiers: Set<String> = []
    ) throws -> Stage.Sender {
        Stage.Sender(
            id: try #require(ParticipantID(name)), authority: authority, mayModerate: mayModerate,
            tiers: tiers)
    }

    @Test func `admits the tier, people on stage, moderators and admins`() throws {
        #expect(!gate.admits(nil, isOnStage: false))
        for authority in Stage.Sender.Authority.allCases {
            // A host's token is of no use in somebody else's stream.
            #expect(gate.admits(try sender("bob", authority), isOnStage: false) == (authority == .admin))
            #expect(gate.admits(try sender("bob", authority), isOnStage: true))
        }
        #expect(gate.admits(try sender("bob", .viewer, tiers: ["silver", "gold"]), isOnStage: false))
        #expect(!gate.admits(try sender("bob", .viewer, tiers: ["silver", "Gold"]), isOnStage: false))
        #expect(gate.admits(try sender("mo", .viewer, mayModerate: true), isOnStage: false))
    }

    @Test(arguments: [
        StageDetails.Gate(tier: ""), StageDetails.Gate(tier: "a b"), StageDetails.Gate(tier: "göld"),
        StageDetails.Gate(tier: String(repeating: "a", count: 33)),
        StageDetails.Gate(tier: "a", freeSeconds: -1), StageDetails.Gate(tier: "a", freeSeconds: 601),
        StageDetails.Gate(tier: "a", unlock: "http://shop.example"),
        StageDetails.Gate(tier: "a", unlock: "javascript:alert(1)"),
        StageDetails.Gate(tier: "a", unlock: "https://"),
        StageDetails.Gate(tier: "a", unlock: "https://shop.example/\"onclick"),
        StageDetails.Gate(tier: "a", unlock: "https://shop.example/" + String(repeating: "a", count: 500)),
    ])
    func `is refused where it makes no sense`(wrong: StageDetails.Gate) {
        var details = StageDetails()
        details.gate = wrong
        #expect(throws: Rejection.invalid("gate")) {
            try details.validate(at: WallTime(milliseconds: 0), startsAtIsNew: false)
        }
    }

    @Test func `is replaced as a whole by an edit, and removed by null`() throws {
        var details = StageDetails()
        details.gate = gate
        try details.validate(at: WallTime(milliseconds: 0), startsAtIsNew: false)
        #expect(StageEdit().applied(to: details).gate == gate)
        var edit = StageEdit()
        edit.gate = .set(StageDetails.Gate(tier: "silver"))
        #expect(edit.applied(to: details).gate == StageDetails.Gate(tier: "silver"))
        edit.gate = .clear
        #expect(edit.applied(to: details).gate == nil)
    }
}

@Suite struct `What everybody may watch of a gated stream` {
    private let start = MonotonicTime.zero + .seconds(1)

    private func named(_ name: String) throws -> FreeViewing.Viewer {
        let sender = Stage.Sender(id: try #require(ParticipantID(name)), authority: .viewer)
        return FreeViewing.Viewer(sender, at: IPAddress("192.0.2.1"))
    }

    private func guest(_ name: String, at address: String) throws -> FreeViewing.Viewer {
        let sender = Stage.Sender(
            id: try #require(ParticipantID(name)), authority: .viewer, isGuest: true)
        return FreeViewing.Viewer(sender, at: IPAddress(address))
    }

    @Test func `the free time of a viewer runs once for all sessions, and stops while none watches`() throws {
        var viewing = FreeViewing()
        let bob = try named("bob")
        viewing.begin(bob, at: start)
        viewing.begin(bob, at: start + .seconds(2))
        #expect(viewing.remaining(of: bob, from: 10, at: start + .seconds(3)) == .seconds(7))
        viewing.end(bob, at: start + .seconds(4))
        viewing.end(bob, at: start + .seconds(5))
        // An end too many does no harm.
        viewing.end(bob, at: start + .seconds(6))
        #expect(viewing.remaining(of: bob, from: 10, at: start + .seconds(100)) == .seconds(5))
        viewing.begin(bob, at: start + .seconds(100))
        #expect(viewing.remaining(of: bob, from: 10, at: start + .seconds(109)) == .zero)
        #expect(viewing.remaining(of: try named("eve"), from: 10, at: start) == .seconds(10))
    }

    @Test func `guests at one address share its free time, because identities cost nothing`() throws {
        var viewing = FreeViewing()
        viewing.begin(try guest("guest-1", at: "192.0.2.1"), at: start)
        let later = start + .seconds(10)
        for other in [
            try guest("guest-2", at: "192.0.2.1"), FreeViewing.Viewer(nil, at: IPAddress("192.0.2.1")),
        ] {
            #expect(viewing.remaining(of: other, from: 10, at: later) == .zero)
        }
        #expect(viewing.remaining(of: try guest("guest-2", at: "192.0.2.2"), from: 10, at: later) > .zero)
        // A viewer with a given identity has free time of their own.
        #expect(viewing.remaining(of: try named("bob"), from: 10, at: later) == .seconds(10))
    }

    @Test func `an IPv6 site has free time for sixteen viewers at most`() throws {
        var viewing = FreeViewing()
        var watched = 0
        for number in 0..<1_000 {
            let viewer = FreeViewing.Viewer(nil, at: IPAddress("2001:db8:1:\(String(number, radix: 16))::1"))
            let now = start + .seconds(Int64(number) * 10)
            guard viewing.remaining(of: viewer, from: 10, at: now) == .seconds(10) else { continue }
            viewing.begin(viewer, at: now)
            viewing.end(viewer, at: now + .seconds(10))
            watched += 1
        }
        // Four for each /56, sixteen for the /48.
        #expect(watched == 16)
    }

    @Test func `viewers beyond the limit share one free time, and nobody gets a second one`() throws {
        var viewing = FreeViewing(limit: 3)
        for number in 0..<50 {
            let viewer = try named("v\(number)")
            viewing.begin(viewer, at: start)
            viewing.end(viewer, at: start + .seconds(4))
        }
        #expect(viewing.count == 3)
        for number in 0..<3 {
            #expect(
                viewing.remaining(of: try named("v\(number)"), from: 10, at: start + .seconds(60))
                    == .seconds(6))
        }
        #expect(viewing.remaining(of: try named("v3"), from: 10, at: start + .seconds(60)) == .zero)
        #expect(viewing.remaining(of: try named("new"), from: 10, at: start + .seconds(60)) == .zero)
    }

    /// However sessions come and go, only time that was watched is used up, and nobody gets more than the limit.
    @Test(arguments: 1...20)
    func `the free time used is always the time watched`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var viewing = FreeViewing()
        let viewers = try ["bob", "eve", "zoe"].map(named)
        var watching = [0, 0, 0]
        var watched = [Duration.zero, .zero, .zero]
        var now = start
        for _ in 0..<500 {
            let step = Duration.milliseconds(Int64.random(in: 0...40, using: &random))
            for index in 0..<3 where watching[index] > 0 { watched[index] += step }
            now = now + step
            let index = Int.random(in: 0..<3, using: &random)
            if Bool.random(using: &random) {
                viewing.begin(viewers[index], at: now)
                watching[index] += 1
            } else {
                viewing.end(viewers[index], at: now)
                watching[index] = max(watching[index] - 1, 0)
            }
            for index in 0..<3 {
                let expected = max(Duration.seconds(5) - watched[index], .zero)
                #expect(viewing.remaining(of: viewers[index], from: 5, at: now) == expected)
            }
        }
    }
}
