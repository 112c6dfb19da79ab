import Base

/// Who speaks on a stage, and who spoke last.
///
/// Pure: takes loudness as it is reported, and the time. Two orders come out of it, both slow enough to look at:
/// `loudest`, in which somebody passes somebody else only by being clearly louder or by speaking where the other is
/// silent, and `latest`, in which somebody goes to the front only after speaking for a moment.
/// - Source: RFC 6464 (audio level).
package struct SpeakerRanking: Sendable {
    private struct Voice: Sendable {
        /// As last reported: 0 is silence, 127 the loudest.
        var level = 0.0
        /// `level`, smoothed.
        var loudness = 0.0
        /// `loudness`, but falling so slowly that it does not fall between words.
        var strength = 0.0
        /// Since when it is above the threshold; nil in silence.
        var speakingSince: MonotonicTime?
        var lastSpoke: MonotonicTime?
        /// When it went to the front of `latest`.
        var movedAt: MonotonicTime?
    }

    /// A quiet voice, as 127 less the -dBov of RFC 6464; noise of a room lies below.
    static let threshold = 77.0
    /// Between two looks at the levels.
    static let step = Duration.milliseconds(100)
    /// So much louder is clearly louder, in dB.
    static let margin = 6.0
    /// A pause between two words is no silence.
    static let pause = Duration.milliseconds(900)
    /// A cough is shorter.
    static let confirmation = Duration.milliseconds(300)
    /// Nobody goes to the front more often, or is driven from there sooner while speaking.
    static let dwell = Duration.seconds(2)
    /// Nobody is driven from the front sooner.
    static let shortestFront = Duration.seconds(1)
    private static let attack = 0.5
    private static let release = 0.2
    /// dB a step.
    private static let fall = 0.5
    /// More time than this at once is not made up for.
    private static let maximumSteps: Int64 = 20

    private var voices: [SessionID: Voice] = [:]
    /// Everybody, the loudest first.
    package private(set) var loudest: [SessionID] = []
    /// Everybody, who spoke last first; who never spoke, in the order in which they came.
    package private(set) var latest: [SessionID] = []
    private var steppedTo: MonotonicTime?

    package init() {}

    /// Enters as the quietest.
    package mutating func add(_ id: SessionID) {
        guard voices[id] == nil else { return }
        voices[id] = Voice()
        loudest.append(id)
        latest.append(id)
    }

    /// Whoever came next moves up.
    package mutating func remove(_ id: SessionID) {
        guard voices.removeValue(forKey: id) != nil else { return }
        loudest.removeAll { $0 == id }
        latest.removeAll { $0 == id }
    }

    /// Takes in how loud somebody is from now on.
    package mutating func note(_ level: UInt8, of id: SessionID) {
        voices[id]?.level = Double(min(level, 127))
    }

    /// Whether somebody is heard just now.
    package func isSpeaking(_ id: SessionID) -> Bool { voices[id]?.speakingSince != nil }

    /// Goes on in whole steps; the rest of the time counts for the next call.
    package mutating func advance(to now: MonotonicTime) {
        guard let last = steppedTo else { return steppedTo = now }
        let steps = now.nanoseconds(since: last) / Self.step.wholeNanoseconds
        guard steps > 0 else { return }
        for _ in 0..<min(steps, Self.maximumSteps) { smooth(at: now) }
        steppedTo = steps > Self.maximumSteps ? now : last + Self.step * Int(steps)
        sortByLoudness(at: now)
        moveToFront(at: now)
    }

    private mutating func smooth(at now: MonotonicTime) {
        for id in loudest {
            guard var voice = voices[id] else { continue }
            let weight = voice.level > voice.loudness ? Self.attack : Self.release
            voice.loudness += (voice.level - voice.loudness) * weight
            voice.strength = max(voice.loudness, voice.strength - Self.fall)
            if voice.loudness >= Self.threshold {
                voice.speakingSince = voice.speakingSince ?? now
                voice.lastSpoke = now
            } else {
                voice.speakingSince = nil
            }
            voices[id] = voice
        }
    }

    /// Lets each pass those before it whom it beats.
    private mutating func sortByLoudness(at now: MonotonicTime) {
        for start in loudest.indices.dropFirst() {
            var place = start
            while place > 0, passes(loudest[place], loudest[place - 1], at: now) {
                loudest.swapAt(place, place - 1)
                place -= 1
            }
        }
    }

    private func passes(_ id: SessionID, _ other: SessionID, at now: MonotonicTime) -> Bool {
        guard let voice = voices[id], let before = voices[other], voice.speakingSince != nil else {
            return false
        }
        return isSilent(before, at: now) || voice.loudness > before.strength + Self.margin
    }

    private func isSilent(_ voice: Voice, at now: MonotonicTime) -> Bool {
        guard let lastSpoke = voice.lastSpoke else { return true }
        return now >= lastSpoke + Self.pause
    }

    private func mayBeDriven(_ id: SessionID, at now: MonotonicTime) -> Bool {
        guard let voice = voices[id], let since = voice.movedAt else { return true }
        return now >= since + (voice.speakingSince == nil ? Self.shortestFront : Self.dwell)
    }

    /// Moves the first of those who have something to say: before the one who speaks if that one is silent or
    /// clearly less loud, else right behind.
    private mutating func moveToFront(at now: MonotonicTime) {
        for (place, id) in latest.enumerated().reversed() where place > 0 {
            guard var voice = voices[id], let since = voice.speakingSince, now >= since + Self.confirmation,
                voice.movedAt.map({ now >= $0 + Self.dwell }) ?? true
            else { continue }
            let target = passes(id, latest[0], at: now) ? 0 : 1
            guard target < place else { continue }
            guard target > 0 || mayBeDriven(latest[0], at: now) else { continue }
            latest.remove(at: place)
            latest.insert(id, at: target)
            voice.movedAt = now
            voices[id] = voice
            return
        }
    }
}
