import Base
import CSandbox
import Glibc
import Testing

@testable import Transcoder

@Suite struct `A watchdog` {
    private let stuck = DecodingRegister.Entry(source: SourceKey(number: 1), count: 5)

    @Test func `tells a decoder that is stuck from one that is busy`() {
        var watchdog = Watchdog(limit: .seconds(10))
        // It never rests.
        func isStuck(_ entries: [Int: DecodingRegister.Entry], at second: Int) -> Bool {
            !watchdog.stuck(entries, at: .zero + .seconds(second)) { _ in .seconds(second) }.isEmpty
        }
        for second in 0..<30 {
            let busy = DecodingRegister.Entry(source: SourceKey(number: 2), count: UInt64(second))
            #expect(!isStuck([1: busy], at: second))
        }
        #expect(!isStuck([0: stuck], at: 30))
        #expect(!isStuck([0: stuck], at: 39))
        #expect(isStuck([0: stuck], at: 40))
    }

    @Test func `lets a decoder wait for its turn, but not for ever`() {
        var watchdog = Watchdog(limit: .seconds(10))
        // It gets a tenth of a processor.
        func isStuck(at second: Int) -> Bool {
            !watchdog.stuck([0: stuck], at: .zero + .seconds(second)) { _ in .milliseconds(second * 100) }
                .isEmpty
        }
        for second in 0..<60 {
            #expect(!isStuck(at: second))
        }
        #expect(isStuck(at: 60))
    }

    @Test func `blames whose thread works, not who waits beside it`() {
        var watchdog = Watchdog(limit: .seconds(10))
        let waiting = DecodingRegister.Entry(source: SourceKey(number: 2), count: 1, thread: 12)
        let working = DecodingRegister.Entry(source: SourceKey(number: 3), count: 1, thread: 13)
        for second in 0..<10 {
            let blamed = watchdog.stuck([0: waiting, 1: working], at: .zero + .seconds(second)) {
                $0.thread == 13 ? .seconds(second) : .zero
            }
            #expect(blamed.isEmpty)
        }
        let blamed = watchdog.stuck([0: waiting, 1: working], at: .zero + .seconds(10)) {
            $0.thread == 13 ? .seconds(10) : .zero
        }
        #expect(blamed == [working.source])
    }

    @Test func `gives a still less time than a frame, and nothing more`() {
        for (asked, allowed) in [(2, 2), (20, 10)] {
            var watchdog = Watchdog(limit: .seconds(10))
            let still = DecodingRegister.Entry(source: SourceKey(number: 2), count: 1, limit: .seconds(asked))
            let second = (0..<30).first { second in
                !watchdog.stuck([0: still], at: .zero + .seconds(second)) { _ in .seconds(second) }.isEmpty
            }
            #expect(second == allowed)
        }
    }

    @Test func `reads in the register which thread decodes, and within what time`() throws {
        let memory = csandbox_shared_memory(DecodingRegister.size)
        try #require(memory >= 0)
        defer { csandbox_close(memory) }
        // Its size is sealed: nobody who has it ends the server by cutting it off.
        #expect(ftruncate(memory, 0) == -1 && ftruncate(memory, 1 << 20) == -1)
        let register = try #require(DecodingRegister(descriptor: memory))
        register.whileDecoding(SourceKey(number: 7), within: .seconds(2)) {
            let entry = register.entries.values.first
            #expect(entry?.source == SourceKey(number: 7) && entry?.limit == .seconds(2))
            #expect(entry?.thread == csandbox_thread())
        }
        register.whileDecoding(SourceKey(number: 8)) { #expect(register.entries.values.first?.limit == nil) }
        #expect(register.entries.isEmpty)
    }

    @Test func `knows how much time a thread has had`() {
        let (process, thread) = (getpid(), csandbox_thread())
        let before = csandbox_thread_cpu_nanoseconds(process, thread)
        var random = SystemRandomNumberGenerator()
        var sum: UInt64 = 0
        while csandbox_thread_cpu_nanoseconds(process, thread) < before + 20_000_000 { sum &+= random.next() }
        #expect(before >= 0)
        #expect(csandbox_thread_cpu_nanoseconds(process, 0x03FF_FFFF) < 0)
    }

    @Test func `knows how much time a process has had`() {
        let before = csandbox_cpu_nanoseconds(getpid())
        var random = SystemRandomNumberGenerator()
        var sum: UInt64 = 0
        while csandbox_cpu_nanoseconds(getpid()) < before + 5_000_000 { sum &+= random.next() }
        #expect(before > 0)
        #expect(csandbox_cpu_nanoseconds(0x03FF_FFFF) == 0)
    }
}

@Suite struct `A death register` {
    private let source = SourceKey(number: 4)

    @Test func `refuses what killed the process three times`() {
        var deaths = DeathRegister()
        for index in 0..<3 {
            #expect(!deaths.refuses(source, at: .zero + .seconds(index)))
            deaths.note([source, source], at: .zero + .seconds(index))
        }
        #expect(deaths.refuses(source, at: .zero + .seconds(2)))
        #expect(deaths.refuses(source, at: .zero + .seconds(601)))
        #expect(!deaths.refuses(SourceKey(number: 5), at: .zero + .seconds(2)))
        #expect(deaths.refusedCount(at: .zero + .seconds(2)) == 1)
    }

    @Test func `refuses for twice as long after each further death, up to a day`() {
        var deaths = DeathRegister()
        var now = MonotonicTime.zero
        for _ in 0..<2 { deaths.note([source], at: now) }
        for pause in [600, 1_200, 2_400, 4_800, 9_600, 19_200, 38_400, 76_800, 86_400, 86_400] {
            #expect(!deaths.refuses(source, at: now))
            deaths.note([source], at: now)
            now = now + .seconds(pause)
            #expect(deaths.refuses(source, at: now.advanced(byNanoseconds: -1)))
        }
        // Twice the pause is long enough to begin anew.
        now = now + .seconds(86_400)
        deaths.note([source], at: now)
        #expect(!deaths.refuses(source, at: now))
    }

    @Test func `forgets what was long ago`() {
        var deaths = DeathRegister()
        for index in 0..<10 {
            deaths.note([source], at: .zero + .seconds(700 * index))
            #expect(!deaths.refuses(source, at: .zero + .seconds(700 * index)))
        }
    }

    /// Whoever has thousands of sources must not fill the memory.
    @Test func `records so many sources at once, and others once these are forgotten`() {
        var deaths = DeathRegister()
        let many = (0..<1_000 as Range<UInt64>).map { SourceKey(number: $0) }
        for _ in 0..<3 { deaths.note(many, at: .zero) }
        let other = SourceKey(number: 5_000)
        for _ in 0..<3 { deaths.note([other, many[7]], at: .zero + .seconds(1)) }
        #expect(!deaths.refuses(other, at: .zero + .seconds(1)))
        // One of them has killed the process three times more.
        #expect(deaths.refusedCount(at: .zero + .seconds(599)) == 1_000)
        #expect(deaths.refusedCount(at: .zero + .seconds(601)) == 1)
        // Twice their pause later the others are forgotten.
        let later = MonotonicTime.zero + .seconds(1_200)
        for _ in 0..<3 { deaths.note([other], at: later) }
        #expect(deaths.refuses(other, at: later))
    }
}
