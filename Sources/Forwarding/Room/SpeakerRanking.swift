import Base

/// Ranks the sessions on a stage by loudness and by who spoke last.
///
/// Pure: its input is the reported levels and the time. It keeps two orders, both of which change slowly enough for
/// viewers. In `loudest` a session passes another one only if it is clearly louder, or speaks while the other is
/// silent. In `latest` a session moves to the front only after it has spoken for a moment.
/// - Source: RFC 6464 (audio level).
package struct SpeakerRanking: Sendable {
    /// The audio levels of one session.
    private struct Voice: Sendable {
        /// As last reported: 0 is silence, 127 the loudest.
        var level = 0.0
        /// `level`, smoothed.
        var loudness = 0.0
        /// Like `loudness`, but falls so slowly that it does not drop between words.
        var strength = 0.0
        /// When it rose above the threshold; nil in silence.
        var speakingSince: MonotonicTime?
        var lastSpoke: MonotonicTime?
        /// When it went to the front of `latest`.
        var movedAt: MonotonicTime?
    }

    /// The level of a quiet voice, as 127 minus the -dBov of RFC 6464; room noise lies below.
    static let threshold = 77.0
    /// Time between two evaluations of the levels.
    static let step = Duration.milliseconds(100)
    /// Difference that counts as clearly louder, in dB.
    static let margin = 6.0
    /// Silence must last this long, because words have pauses between them.
    static let pause = Duration.milliseconds(900)
    /// Speech must last this long before it counts, which excludes a cough.
    static let confirmation = Duration.milliseconds(300)
    /// Minimum time between two moves of a session to the front, and before one that still speaks is displaced.
    static let dwell = Duration.seconds(2)
    /// Minimum time at the front for a session that has stopped speaking.
    static let shortestFront = Duration.seconds(1)
    // Weights of a new level when it is louder and when it is quieter, per step.
    private static let attack = 0.5
    private static let release = 0.2
    /// Decrease of `strength`, in dB per step.
    private static let fall = 0.5
    /// Maximum number of steps in one call; longer gaps are not made up for.
    private static let maximumSteps: Int64 = 20

    private var voices: [SessionID: Voice] = [:]
    /// All sessions, the loudest first.
    package private(set) var loudest: [SessionID] = []
    /// All sessions, the latest speaker first; those that never spoke are in order of arrival.
    package private(set) var latest: [SessionID] = []
    private var steppedTo: MonotonicTime?

    package init() {}

    /// Adds a session at the end of both orders.
    package mutating func add(_ id: SessionID) {
        guard voices[id] == nil else { return }
        voices[id] = Voice()
        loudest.append(id)
        latest.append(id)
    }

    /// Removes a session; those behind it move up.
    package mutating func remove(_ id: SessionID) {
        guard voices.removeValue(forKey: id) != nil else { return }
        loudest.removeAll { $0 == id }
        latest.removeAll { $0 == id }
    }

    /// Notes the level of a session, 0 for silence to 127 for the loudest, which holds until the next one.
    package mutating func note(_ level: UInt8, of id: SessionID) {
        voices[id]?.level = Double(min(level, 127))
    }

    /// Whether a session is above the threshold now.
    package func isSpeaking(_ id: SessionID) -> Bool { voices[id]?.speakingSince != nil }

    /// Advances in whole steps; the remaining time counts toward the next call.
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

    /// Moves each session ahead of those directly before it that it passes.
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

    /// Moves one session that has spoken for long enough: to the front if the session there is silent or clearly
    /// quieter, otherwise right behind it.
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
