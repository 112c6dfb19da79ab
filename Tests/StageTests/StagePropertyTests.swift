import Base
import Foundation
import Stage
import TestSupport
import Testing

/// Thousands of random commands by random people; whatever happens, some things must stay true.
@Suite struct StageProperties {
    private struct World {
        var rig: StageRig
        var random: SeededGenerator
        var connections: [(sender: Stage.Sender?, connection: Stage.Connection)] = []

        init(seed: UInt64) throws {
            random = SeededGenerator(seed: seed)
            let isMade = Bool.random(using: &random)
            let startsIn = Bool.random(using: &random) ? Int.random(in: 0...100, using: &random) : nil
            rig = try StageRig(
                origin: isMade ? .made : .published, startsIn: startsIn,
                joinAhead: Int.random(in: 0...50, using: &random),
                grace: Int.random(in: 0...40, using: &random))
        }

        mutating func someone() -> Stage.Sender {
            // More than fit on the stage; the host's name comes with any token.
            let name =
                Int.random(in: 0..<20, using: &random) == 0
                ? "ann" : "p\(Int.random(in: 0..<70, using: &random))"
            let authorities: [Stage.Sender.Authority] = [
                .viewer, .viewer, .speaker, .speaker, .host, .admin,
            ]
            return StageRig.sender(name, authorities[Int.random(in: 0..<6, using: &random)])
        }

        mutating func someCommand() -> Stage.Command {
            let target = someone().id
            let flag = Bool.random(using: &random)
            switch Int.random(in: 0..<60, using: &random) {
            case 0: return .goLive
            case 1: return Int.random(in: 0..<40, using: &random) == 0 ? .end : .goLive
            case 2..<9: return .join
            case 9: return .leave
            case 10..<18: return .raiseHand
            case 18..<20: return .lowerHand(target)
            case 20..<32: return .invite(target)
            case 32: return .withdrawInvitation(target)
            case 33..<43: return .accept
            case 43: return .decline
            case 44: return .stepDown
            case 45: return .moveToViewers(target)
            case 46: return .remove(target)
            case 47: return .ban(target)
            case 48: return .unban(target)
            case 49..<52: return .setMuted(flag ? .audio : .video, Bool.random(using: &random))
            case 52: return .setPaused(flag)
            case 53: return .publish
            case 54: return .requestMute(target, .audio)
            case 56: return .moveHand(target, place: Int.random(in: 0..<9, using: &random))
            case 57: return .holdHand(target, flag)
            case 58: return .acceptSoundOnly
            case 55:
                var edit = StagePlacement.Edit()
                edit.pinned = flag ? .clear : .set(Int.random(in: -1..<9, using: &random))
                edit.boost = Int.random(in: -9..<9, using: &random)
                return .place(edit)
            default:
                var edit = StageEdit()
                edit.title = .set("T\(Int.random(in: 0..<9, using: &random))")
                return .edit(edit)
            }
        }

        mutating func step() {
            switch Int.random(in: 0..<20, using: &random) {
            case 0..<12:
                let command = someCommand()
                let isHost = Int.random(in: 0..<3, using: &random) == 0
                _ = try? rig.apply(command, from: isHost ? StageRig.ann : someone())
            case 12..<15:
                let sender = Int.random(in: 0..<9, using: &random) == 0 ? nil : someone()
                // As the server does.
                if let sender, rig.stage.record.banned[sender.id] != nil { return }
                connections.append((sender, rig.connect(sender)))
            case 15..<18:
                guard !connections.isEmpty else { return }
                let index = Int.random(in: 0..<connections.count, using: &random)
                let (sender, connection) = connections.remove(at: index)
                rig.disconnect(sender, connection)
            case 18: _ = rig.setSource(Bool.random(using: &random) ? someone().id.description : nil)
            default: rig.wait(Int.random(in: 0...8, using: &random))
            }
        }
    }

    private func check(_ stage: Stage, _ step: Int) {
        let record = stage.record
        #expect(record.speakers.count + 1 <= Stage.stageLimit, "step \(step)")
        #expect(record.speakers[record.host] == nil, "the host is no speaker, step \(step)")
        #expect(record.hands.count <= Stage.handLimit && record.invitations.count <= Stage.invitationLimit)
        for id in record.hands.keys {
            #expect(!record.isOnStage(id), "step \(step): \(id) is on stage and raises a hand")
        }
        for id in record.invitations.keys { #expect(!record.isOnStage(id), "step \(step)") }
        for id in record.banned.keys {
            #expect(!stage.isPresent(id), "step \(step): \(id) is banned and here")
            #expect(!record.isOnStage(id) && record.hands[id] == nil && record.invitations[id] == nil)
        }
        for id in record.speakers.keys { #expect(!record.hasLeftStage(id), "step \(step)") }
        let (started, ended) = (record.startedAt != nil, record.endedAt != nil)
        switch record.phase {
        case .backstage: #expect(!started && !ended)
        case .live: #expect(started && !ended)
        case .ended: #expect(ended && record.speakers.isEmpty && record.hands.isEmpty)
        }
    }

    @Test(arguments: 0..<60)
    func `the rules hold after every step, and replaying the log gives the same record`(seed: Int) throws {
        var world = try World(seed: UInt64(seed))
        var endedAt: WallTime?
        for step in 0..<1_500 {
            world.step()
            check(world.rig.stage, step)
            if let endedAt { #expect(world.rig.stage.record.endedAt == endedAt, "an end is final") }
            endedAt = world.rig.stage.record.endedAt
            if step % 250 == 0 {
                let replayed = StageRecord.replaying(world.rig.log)
                #expect(replayed == world.rig.stage.record, "step \(step)")
            }
        }
        let record = world.rig.stage.record
        #expect(StageRecord.replaying(world.rig.log) == record)
        // What is written and read again is the same, change by change and as a whole.
        let coder = (JSONEncoder(), JSONDecoder())
        let changes = try coder.1.decode([StageChange].self, from: coder.0.encode(world.rig.log))
        #expect(changes == world.rig.log)
        #expect(try coder.1.decode(StageRecord.self, from: coder.0.encode(record)) == record)
    }

    @Test(arguments: 0..<20)
    func `nothing happens before a deadline, and the next deadline is later`(seed: Int) throws {
        var world = try World(seed: 1_000 + UInt64(seed))
        for _ in 0..<400 {
            world.step()
            guard let deadline = world.rig.stage.deadline, deadline > world.rig.now.elapsed else { continue }
            var early = world.rig.stage
            let wait = deadline.nanoseconds(since: world.rig.now.elapsed) / 1_000_000 - 1
            let moment = Moment(
                elapsed: world.rig.now.elapsed.advanced(byNanoseconds: wait * 1_000_000),
                wall: WallTime(milliseconds: world.rig.now.wall.milliseconds + wait))
            #expect(early.advance(to: moment).isEmpty)
            let due = Moment(
                elapsed: deadline, wall: WallTime(milliseconds: world.rig.now.wall.milliseconds + wait + 1))
            _ = early.advance(to: due)
            #expect(early.deadline.map { $0 > deadline } ?? true)
        }
    }
}
