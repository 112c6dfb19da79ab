import Codecs
import TestSupport
import Testing

@testable import sfu_bench

@Suite struct `The demo's audience` {
    private static func acts(seed: UInt64, count: Int = 400) -> [DemoCrowd.Act] {
        var crowd = DemoCrowd(people: 6, remarks: ["one", "two", "three"], answers: 2, gifts: 3, seed: seed)
        return (0..<count).map { _ in crowd.next().act }
    }

    @Test func `does the same for the same seed`() {
        #expect(Self.acts(seed: 3) == Self.acts(seed: 3))
        #expect(Self.acts(seed: 3) != Self.acts(seed: 4))
    }

    @Test(arguments: UInt64(0)..<20) func `answers a question once each, while it is open`(seed: UInt64) {
        var voters: Set<Int>?
        var polls = 0
        for act in Self.acts(seed: seed) {
            switch act {
            case .openPoll:
                #expect(voters == nil)
                voters = []
                polls += 1
            case .closePoll:
                #expect(voters?.isEmpty == false)
                voters = nil
            case .vote(let person, let answer):
                #expect(voters?.insert(person).inserted == true)
                #expect((0..<6).contains(person) && (0..<2).contains(answer))
            case .comment(let person, _), .hearts(let person, _): #expect((0..<6).contains(person))
            case .gift(let person, let gift, let count):
                #expect((0..<6).contains(person) && (0..<3).contains(gift) && (1...3).contains(count))
            }
        }
        #expect(polls > 5)
    }

    @Test func `says everything before it says something again`() {
        let said = Self.acts(seed: 1).compactMap { act in
            if case .comment(_, let text) = act { text } else { nil }
        }
        #expect(said.count > 60)
        for start in stride(from: 0, to: said.count - 2, by: 3) {
            #expect(Set(said[start..<(start + 3)]).count == 3)
        }
    }

    @Test func `does what the server takes`() {
        for show in DemoShow.all {
            #expect(show.remarks.allSatisfy { (1...300).contains($0.count) })
            #expect((1...140).contains(show.question.count))
            #expect((2...6).contains(show.answers.count) && Set(show.answers).count == show.answers.count)
            #expect(show.answers.allSatisfy { (1...60).contains($0.count) })
        }
        #expect(Set(DemoShow.all.map(\.stream)).count == DemoShow.all.count)
        #expect(Set(DemoShow.people).count == DemoShow.people.count)
    }
}

@Suite struct `The demo's pictures and sounds` {
    @Test(arguments: [DemoScene.aurora, .harbour, .city]) func `move, and come round without a seam`(
        scene: DemoScene
    ) throws {
        func lumas(_ phase: Double) throws -> [UInt8] {
            let picture = try scene.picture(at: phase)
            return stride(from: 0, to: DemoScene.height, by: 16).flatMap { y in
                stride(from: 0, to: DemoScene.width, by: 16).compactMap { picture.luma(x: $0, y: y) }
            }
        }
        let (start, end, middle) = (try lumas(0), try lumas(1), try lumas(0.5))
        // Rounding may differ by one step.
        #expect(zip(start, end).allSatisfy { abs(Int($0) - Int($1)) <= 1 })
        #expect(zip(start, middle).filter { abs(Int($0) - Int($1)) > 8 }.count > 20)
    }

    @Test func `sound neither too loud nor broken where they begin again`() {
        for show in DemoShow.all {
            let samples = show.sound.samples(seconds: 2)
            #expect(samples.count == 2 * 2 * DemoSound.rate)
            #expect(samples.allSatisfy { abs($0) < 0.9 })
            #expect(samples.contains { abs($0) > 0.05 })
            guard let first = samples.first, let last = samples.dropLast().last else { continue }
            #expect(abs(first - last) < 0.05)
        }
    }

    @Test func `are sent as VP8 and Opus of the usual shape`() throws {
        let film = try DemoFilm(DemoShow.all[0])
        #expect(film.video.frames.count == DemoFilm.seconds * DemoFilm.framesPerSecond)
        #expect(film.video.frames.filter(\.isKeyFrame).count >= 3)
        #expect((200_000...1_200_000).contains(film.video.bitrate))
        #expect(film.audio.packets.count == DemoFilm.seconds * 50)
        #expect(film.audio.packetInterval == 20_000_000)
    }
}
