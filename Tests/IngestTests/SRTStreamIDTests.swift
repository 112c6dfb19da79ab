import Base
import Ingest
import Testing

@Suite struct SRTStreamIDTests {
    private func field(_ text: String) -> String? { (try? SRTStreamID(parsing: text))?.field.exposed }

    private func fault(_ text: String) -> SRTStreamID.Fault? {
        do throws(SRTStreamID.Fault) {
            _ = try SRTStreamID(parsing: text)
            return nil
        } catch {
            return error
        }
    }

    @Test(arguments: [
        "#!::r=live/talk,m=publish,s=a.b-c_d", "#!::m=publish,s=a.b-c_d,r=talk,u=ann",
        "#!::r=talk?token=a.b-c_d,m=publish,t=stream", "publish:talk:a.b-c_d", "publish:live/talk:a.b-c_d",
        "talk?token=a.b-c_d", "talk?key=a.b-c_d", "live/talk?x=1&token=a.b-c_d", "publish:talk?key=a.b-c_d",
    ]) func `says who publishes what`(text: String) {
        #expect(field(text) == "talk?token=a.b-c_d")
    }

    @Test(arguments: [
        ("", SRTStreamID.Fault.malformed), ("talk", .keyless), ("publish:talk", .keyless),
        ("publish", .unnamed),
        ("publish::k", .unnamed), ("publish:talk:", .keyless), ("read:talk:k", .notPublishing),
        ("#!::r=talk,s=k", .notPublishing), ("#!::r=talk,m=request,s=k", .notPublishing),
        ("#!::m=publish,s=k", .unnamed), ("#!::r=talk,m=publish", .keyless), ("#!::r", .malformed),
        ("#!::r=a,r=b,m=publish,s=k", .malformed), ("#!::r=talk,m=publish,s=k,t=file", .malformed),
        ("#!:{r:talk}", .malformed), ("talk?token=a&key=b", .malformed), ("?token=a", .unnamed),
        ("publish:../../etc/passwd:k", .malformed), ("live/../talk?token=k", .malformed),
        ("publish:talk:k\u{0}", .malformed), ("publish:talk:k\n", .malformed), ("publish:tälk:k", .malformed),
        ("publish:talk:a?token=b", .malformed), ("publish:talk&:a", .malformed),
    ]) func `is refused otherwise`(text: String, why: SRTStreamID.Fault) {
        #expect(fault(text) == why)
        #expect(!why.text.isEmpty)
    }

    @Test func `has 512 bytes at most`() {
        let key = String(repeating: "k", count: 512 - "publish:talk:".count)
        #expect(field("publish:talk:\(key)") == "talk?token=\(key)")
        #expect(fault("publish:talk:\(key)k") == .malformed)
    }
}

@Suite struct SRTSessionTests {
    private var now = MonotonicTime(nanoseconds: 1_000_000_000)

    @Test func `ends where nobody answers, nothing comes, or nothing that is known`() {
        var session = SRTSession(at: now)
        #expect(session.end(at: now + .seconds(9)) == nil)
        #expect(session.end(at: now + .seconds(10)) == .timedOut)
        session.accept(at: now + .seconds(5))
        #expect(session.isPublishing && session.end(at: now + .seconds(14)) == nil)
        session.receive(at: now + .seconds(14))
        #expect(session.end(at: now + .seconds(15))?.name == "unsupported")
        session.noteMedia()
        #expect(session.end(at: now + .seconds(28)) == nil)
        #expect(session.end(at: now + .seconds(29)) == .stalled)
    }

    @Test func `ends once`() {
        var session = SRTSession(at: now)
        let ends = [session.finish(), session.finish()]
        #expect(ends == [true, false] && session.isOver)
        session.accept(at: now)
        #expect(session.isOver && session.deadline == nil)
    }
}
