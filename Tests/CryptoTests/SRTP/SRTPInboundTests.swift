import Crypto
import MallocCounter
import TestSupport
import Testing
import Wire

/// What the receiving side takes, refuses and remembers.
@Suite struct SRTPReceiving {
    @Test(arguments: SRTPProfile.allCases)
    func `refuses every truncation`(_ profile: SRTPProfile) throws {
        let keys = try testKeys(profile)
        var outbound = try SRTPOutbound(.openSSL, keys)
        var inbound = try SRTPInbound(.openSSL, keys)
        let packet = rtpPacket(sequenceNumber: 9, payload: Array(0..<40), sources: 2, extensionWords: 1)
        let sealed = try outbound.seal(packet, index: 9)
        for length in 28..<sealed.count {
            #expect(throws: SRTPError.self) { try inbound.open(Array(sealed.prefix(length))) }
        }
        let report = hex("80c90001cafebabe 00010203")
        let sealedReport = try outbound.sealControl(report)
        for length in 0..<sealedReport.count {
            #expect(throws: SRTPError.self) { try inbound.openControl(Array(sealedReport.prefix(length))) }
        }
        // None of them left a trace.
        #expect(inbound.sourceCount == 0)
        #expect(try inbound.open(sealed) == packet)
        #expect(try inbound.openControl(sealedReport) == report)
    }

    @Test(arguments: SRTPProfile.allCases)
    func `refuses every changed bit`(_ profile: SRTPProfile) throws {
        let keys = try testKeys(profile)
        var outbound = try SRTPOutbound(.openSSL, keys)
        var inbound = try SRTPInbound(.openSSL, keys)
        let packet = rtpPacket(sequenceNumber: 9, payload: Array(0..<20), sources: 1, extensionWords: 1)
        let sealed = try outbound.seal(packet, index: 9)
        let sealedReport = try outbound.sealControl(hex("80c90001cafebabe 00010203"))
        for bit in 0..<(8 * sealed.count) {
            var damaged = sealed
            damaged[bit / 8] ^= 1 << UInt8(bit % 8)
            #expect(throws: (any Error).self) { try inbound.open(damaged) }
        }
        for bit in 0..<(8 * sealedReport.count) {
            var damaged = sealedReport
            damaged[bit / 8] ^= 1 << UInt8(bit % 8)
            #expect(throws: SRTPError.self) { try inbound.openControl(damaged) }
        }
        #expect(inbound.counters.unauthentic > 300)
        #expect(try inbound.open(sealed) == packet)
    }

    @Test func `takes 1,024 numbers of the past once each, and nothing older`() throws {
        let keys = try testKeys(.aeadAES128GCM)
        var outbound = try SRTPOutbound(.openSSL, keys)
        var inbound = try SRTPInbound(.openSSL, keys)
        func sealed(_ index: UInt64) throws -> [UInt8] {
            try outbound.seal(
                rtpPacket(sequenceNumber: UInt16(truncatingIfNeeded: index), payload: [1]), index: index)
        }
        // The window lies across a wrap.
        let highest: UInt64 = 0x1_0000 + 500
        _ = try inbound.open(try sealed(0xFF00))
        _ = try inbound.open(try sealed(highest))
        for step in 1..<UInt64(1_024) where highest - step != 0xFF00 {
            let packet = try sealed(highest - step)
            _ = try inbound.open(packet)
            #expect(throws: SRTPError.replayed) { try inbound.open(packet) }
        }
        let old = try sealed(highest - 1_024)
        #expect(throws: SRTPError.replayed) { try inbound.open(old) }
        let repeated = try sealed(0xFF00)
        #expect(throws: SRTPError.replayed) { try inbound.open(repeated) }
        #expect(inbound.counters.replayed == 1_024)
        #expect(inbound.counters.unauthentic == 0)
    }

    /// It is offered to the next session then.
    @Test(arguments: SRTPEngine.allCases, SRTPProfile.allCases)
    func `leaves a packet that is somebody else's as it came, and counts nothing`(
        _ engine: SRTPEngine, _ profile: SRTPProfile
    ) throws {
        let keys = try testKeys(profile)
        var outbound = try SRTPOutbound(.openSSL, keys)
        var inbound = try SRTPInbound(engine, keys)
        var stranger = try SRTPInbound(engine, try testKeys(profile, seed: 2))
        func taken(_ bytes: inout [UInt8], _ header: Int?, by inbound: inout SRTPInbound) -> Int? {
            var span = bytes.mutableSpan
            return inbound.unprotectStray(&span, headerLength: header)
        }
        let (packet, report) = (
            rtpPacket(sequenceNumber: 9, payload: Array(0..<40)), hex("80c90001cafebabe 00010203")
        )
        for (plain, sealed, header) in [
            (packet, try outbound.seal(packet, index: 9), 12),
            (report, try outbound.sealControl(report), nil),
        ] as [([UInt8], [UInt8], Int?)] {
            var bytes = sealed
            #expect(taken(&bytes, header, by: &stranger) == nil)
            #expect(bytes == sealed)
            #expect(taken(&bytes, header, by: &inbound) == plain.count)
            #expect(Array(bytes.prefix(plain.count)) == plain)
            // Once.
            bytes = sealed
            #expect(taken(&bytes, header, by: &inbound) == nil)
            #expect(bytes == sealed)
            for length in 0..<sealed.count {
                var cut = Array(sealed.prefix(length))
                #expect(taken(&cut, header, by: &stranger) == nil)
                #expect(cut == Array(sealed.prefix(length)))
            }
        }
        #expect(stranger.counters == inbound.counters && inbound.counters.unauthentic == 0)
    }

    @Test func `does not let a forged packet move the window`() throws {
        let keys = try testKeys(.aes128CMHMACSHA1_80)
        var outbound = try SRTPOutbound(.openSSL, keys)
        var forger = try SRTPOutbound(.openSSL, try testKeys(.aes128CMHMACSHA1_80, seed: 2))
        var inbound = try SRTPInbound(.openSSL, keys)
        let first = rtpPacket(sequenceNumber: 10, payload: [1])
        _ = try inbound.open(try outbound.seal(first, index: 10))
        let forged = try forger.seal(rtpPacket(sequenceNumber: 30_000, payload: [1]), index: 30_000)
        #expect(throws: SRTPError.authenticationFailed) { try inbound.open(forged) }
        let second = rtpPacket(sequenceNumber: 11, payload: [1])
        #expect(try inbound.open(try outbound.seal(second, index: 11)) == second)
    }

    @Test(arguments: SRTPEngine.allCases)
    func `remembers 64 sources and forgets the one that is silent for the longest`(_ engine: SRTPEngine)
        throws
    {
        let keys = try testKeys(.aeadAES128GCM)
        var outbound = try SRTPOutbound(.openSSL, keys)
        var inbound = try SRTPInbound(engine, keys)
        func packet(_ ssrc: UInt32, _ index: UInt64) throws -> [UInt8] {
            let plain = rtpPacket(
                ssrc: ssrc, sequenceNumber: UInt16(truncatingIfNeeded: index), payload: [1])
            return try outbound.seal(plain, index: index)
        }
        for ssrc in UInt32(0)..<64 { _ = try inbound.open(try packet(ssrc, 1)) }
        _ = try inbound.open(try packet(0, 2))
        #expect(inbound.sourceCount == 64)
        _ = try inbound.open(try packet(1_000, 1))
        #expect(inbound.sourceCount == 64)
        // Source 0 was heard lately; source 1 had to go, so that its old packet is new again.
        let known = try packet(0, 1)
        #expect(throws: SRTPError.replayed) { try inbound.open(known) }
        _ = try inbound.open(try packet(1, 1))
    }

    @Test(arguments: SRTPEngine.allCases, SRTPProfile.allCases)
    func `refuses RTCP that says it is not encrypted`(_ engine: SRTPEngine, _ profile: SRTPProfile) throws {
        let keys = try testKeys(profile)
        var outbound = try SRTPOutbound(.openSSL, keys)
        var inbound = try SRTPInbound(engine, keys)
        var sealed = try outbound.sealControl(hex("80c90001cafebabe"))
        let word = sealed.count - (profile == .aes128CMHMACSHA1_80 ? 14 : 4)
        sealed[word] &= 0x7F
        #expect(throws: SRTPError.notEncrypted) { try inbound.openControl(sealed) }
    }

    @Test(arguments: SRTPProfile.allCases)
    func `survives garbage`(_ profile: SRTPProfile) throws {
        var inbound = try SRTPInbound(.openSSL, try testKeys(profile))
        var random = SeededGenerator(seed: 4)
        for _ in 0..<20_000 {
            let length = Int.random(in: 0...120, using: &random)
            let bytes = (0..<length).map { _ in UInt8.random(in: 0...255, using: &random) }
            var (media, control) = (bytes, bytes)
            var span = media.mutableSpan
            let header = Int.random(in: -5...130, using: &random)
            let claimed =
                Int.random(in: 0...2, using: &random) == 0 ? Int.random(in: -5...200, using: &random) : length
            _ = try? inbound.unprotect(&span, length: claimed, headerLength: header)
            var controlSpan = control.mutableSpan
            _ = try? inbound.unprotectControl(&controlSpan, length: claimed)
            _ = (media.count, control.count)
        }
        #expect(inbound.sourceCount == 0)
        #expect(inbound.counters.unauthentic > 0)
        #expect(inbound.counters.malformed > 0)
    }
}

/// What the sending side refuses, and what it costs.
@Suite struct SRTPSending {
    @Test func `refuses what does not fit`() throws {
        var outbound = try SRTPOutbound(.openSSL, try testKeys(.aeadAES128GCM))
        let body = [UInt8](repeating: 1, count: 100)
        var errors: [SRTPError] = []
        for (header, prefix) in [(12, 0), (11, 0), (12, -1), (.max, 0), (12, .max)] {
            var buffer = [UInt8](repeating: 0, count: 12 + 100 + 15)
            var span = buffer.mutableSpan
            do throws(SRTPError) {
                _ = try outbound.protect(
                    &span, headerLength: header, prefixLength: prefix, body: body.span, index: 0)
            } catch {
                errors.append(error)
            }
        }
        for length in [8, 7, 28] {
            var buffer = [UInt8](repeating: 0, count: 27)
            var span = buffer.mutableSpan
            do throws(SRTPError) {
                _ = try outbound.protectControl(&span, length: length)
            } catch {
                errors.append(error)
            }
        }
        #expect(
            errors == [
                .noRoom, .truncated, .truncated, .truncated, .truncated, .noRoom, .truncated, .truncated,
            ])
    }

    @Test func `refuses an index of more than 48 bits`() throws {
        var outbound = try SRTPOutbound(.openSSL, try testKeys(.aeadAES128GCM))
        let packet = rtpPacket(sequenceNumber: 0, payload: [1])
        #expect(throws: SRTPError.exhausted) { try outbound.seal(packet, index: 1 << 48) }
    }

    @Test(arguments: SRTPProfile.allCases)
    func `allocates nothing after the first packet, nor does receiving`(_ profile: SRTPProfile) throws {
        guard malloc_counter_is_on() == 1 else { return }
        let keys = try testKeys(profile)
        var outbound = try SRTPOutbound(.openSSL, keys)
        var inbound = try SRTPInbound(.openSSL, keys)
        var buffer = [UInt8](repeating: 0, count: 1_500)
        let header = rtpPacket(sequenceNumber: 0, payload: [1, 2, 3, 4])
        let body = [UInt8](repeating: 7, count: 1_180)
        var report = [UInt8](repeating: 0, count: 200)
        var span = buffer.mutableSpan
        var reportSpan = report.mutableSpan
        var total = 0
        var allocations: UInt64 = 0
        for number in UInt16(0)...100 {
            for index in header.indices { span[index] = header[index] }
            try span.store(number, at: 2)
            let before = malloc_counter_allocations()
            let length = try outbound.protect(
                &span, headerLength: 12, prefixLength: 4, body: body.span, index: UInt64(number))
            total += try inbound.unprotect(&span, length: length, headerLength: 12)
            let controlLength = try outbound.protectControl(&reportSpan, length: 100)
            total += try inbound.unprotectControl(&reportSpan, length: controlLength)
            // The first packet makes the contexts.
            if number > 0 { allocations += malloc_counter_allocations() - before }
        }
        #expect(allocations == 0)
        #expect(total == 101 * (12 + 4 + 1_180 + 100))
    }
}
