import Base
import Testing

@testable import Transcoder

@Suite struct `A watchdog` {
    @Test func `tells a decoder that is stuck from one that is busy`() {
        var watchdog = Watchdog(limit: .seconds(10))
        func isStuck(_ entries: [Int: DecodingRegister.Entry], at time: MonotonicTime) -> Bool {
            watchdog.isStuck(entries, at: time)
        }
        let stuck = DecodingRegister.Entry(source: SourceKey(number: 1), count: 5)
        for second in 0..<30 {
            let time = MonotonicTime.zero + .seconds(second)
            let busy = DecodingRegister.Entry(source: SourceKey(number: 2), count: UInt64(second))
            #expect(!isStuck([1: busy], at: time))
        }
        let start = MonotonicTime.zero + .seconds(30)
        #expect(!isStuck([0: stuck], at: start))
        #expect(!isStuck([0: stuck], at: start + .seconds(9)))
        #expect(isStuck([0: stuck], at: start + .seconds(10)))
    }
}

@Suite struct `A death register` {
    private let source = SourceKey(number: 4)

    @Test func `refuses what killed the process three times`() {
        var deaths = DeathRegister()
        for index in 0..<3 {
            #expect(!deaths.refuses(source))
            deaths.note([source, source], at: .zero + .seconds(index))
        }
        #expect(deaths.refuses(source))
        #expect(!deaths.refuses(SourceKey(number: 5)))
        deaths.note([], at: .zero + .seconds(5_000))
        #expect(deaths.refuses(source))
    }

    @Test func `forgets what was long ago`() {
        var deaths = DeathRegister()
        for index in 0..<10 {
            deaths.note([source], at: .zero + .seconds(700 * index))
            #expect(!deaths.refuses(source))
        }
    }
}
