import Base
import Ingest
import Restream
import Testing
import Wire

@Suite struct `A publisher at its limits` {
    private var rig: RestreamRig

    init() throws { rig = try RestreamRig() }

    private var pictures: [UInt32] {
        rig.video.filter { $0.tag.content == .frame }.map { $0.timestamp }
    }

    private var sounds: [UInt32] {
        rig.audio.filter { $0.tag.content == .frame }.map { $0.timestamp }
    }

    /// Time stamps have no sign: one before the first picture would be 49 days later.
    @Test mutating func `sends no sound from before the first picture, and no time before it`() {
        rig.goLive()
        rig.send(.sound, at: 10)
        rig.send(.picture, at: 20)
        rig.send(.keyFrame, at: 100)
        rig.send(.sound, at: 99)
        rig.send(.sound, at: 100)
        rig.send(.picture, at: 90)
        rig.send(.sound, at: 140)
        rig.talk()
        let (seen, heard) = (pictures, sounds)
        #expect(seen == [0, 0])
        #expect(heard == [0, 40])
        #expect(rig.publisher.dropped == 0)
    }

    /// To the byte: with one more waiting it is the other way round.
    @Test mutating func `leaves out and resumes at the very size of what waits`() {
        rig.goLive()
        rig.send(.keyFrame, at: 0)
        rig.talk()
        rig.send(.picture, at: 33, waiting: RTMPPublisher.pictureLimit)
        rig.talk()
        rig.send(.picture, at: 66, waiting: RTMPPublisher.pictureLimit + 1)
        rig.send(.keyFrame, at: 100, waiting: RTMPPublisher.resumeLimit + 1)
        rig.send(.keyFrame, at: 133, waiting: RTMPPublisher.resumeLimit)
        rig.talk()
        rig.send(.sound, at: 140, waiting: RTMPPublisher.soundLimit)
        rig.talk()
        rig.send(.sound, at: 160, waiting: RTMPPublisher.soundLimit + 1)
        rig.talk()
        let (seen, heard) = (pictures, sounds)
        #expect(seen == [0, 33, 133])
        #expect(heard == [140])
        #expect(rig.publisher.dropped == 2)
    }

    /// What an encoder made before the target accepted the stream is no gap, and counts for nothing.
    @Test mutating func `begins with the next key frame after it was accepted`() {
        rig.talk()
        rig.publisher.send(.format(RestreamRig.format), waiting: 0)
        rig.send(.keyFrame, at: 0)
        rig.send(.picture, at: 33)
        rig.accept()
        rig.send(.picture, at: 66)
        rig.send(.sound, at: 70)
        rig.send(.keyFrame, at: 100)
        rig.send(.picture, at: 133)
        rig.talk()
        let (seen, heard) = (pictures, sounds)
        #expect(seen == [0, 33])
        #expect(heard.isEmpty)
        #expect(rig.publisher.dropped == 0)
    }

    /// Also what is already under way when the end comes.
    @Test mutating func `says nothing more once it is over, and keeps the first reason`() {
        rig.goLive()
        rig.send(.keyFrame, at: 0)
        rig.publisher.end()
        let last = rig.publisher.takeOutput()
        #expect(!last.isEmpty)
        rig.publisher.end()
        rig.publisher.advance(to: RestreamRig.start + .seconds(3_600))
        rig.publisher.receive([0xFF, 0xFF, 0xFF].span)
        rig.send(.keyFrame, at: 33)
        let more = rig.publisher.takeOutput()
        #expect(more.isEmpty)
        #expect(rig.publisher.phase == .over(nil))
        #expect(rig.publisher.deadline == nil)
    }
}
