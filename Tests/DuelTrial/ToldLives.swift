import Base
import Interaction

/// What the lives of one seed have told, line by line.
struct ToldLives {
    /// Asked for, by side, in order.
    var asked: [TrialStreams.Side: [TrialGift]] = [:]
    /// Their numbers, by side.
    var acknowledged: [TrialStreams.Side: [TrialGift: Int]] = [:]
    /// Taps that count, with the time.
    var taps: [TrialStreams.Side: [(count: Int, at: Int64)]] = [:]
    var duels: [DuelID] = []
    var results: [DuelID: String] = [:]
    /// From when on each side counts for a duel.
    var counting: [DuelID: [TrialStreams.Side: Int64]] = [:]
    var time: Int64 = 1_800_000_000_000
    /// When a process was killed.
    var kills: [Int64] = []

    /// Takes in a line of `TrialLife`.
    /// - Returns: false if it is none.
    mutating func take(_ line: String) -> Bool {
        let parts = line.split(separator: " ", maxSplits: 2).map(String.init)
        let (first, rest) = (parts.dropFirst().first ?? "", parts.dropFirst(2).first ?? "")
        let words = rest.split(separator: " ")
        switch parts.first {
        case "T": if let time = Int64(first) { self.time = time; return true }
        case "A":
            guard let side = TrialStreams.Side(rawValue: first), let gift = TrialGift(key: rest) else {
                break
            }
            if asked[side]?.contains(gift) != true { asked[side, default: []].append(gift) }
            return true
        case "G":
            guard let side = TrialStreams.Side(rawValue: first), words.count == 2,
                let gift = TrialGift(key: words[0]), let number = Int(words[1]),
                acknowledged[side]?[gift] ?? number == number
            else { break }
            acknowledged[side, default: [:]][gift] = number
            return true
        case "H":
            guard let side = TrialStreams.Side(rawValue: first), words.count == 2, let count = Int(words[0]),
                let time = Int64(words[1])
            else { break }
            taps[side, default: []].append((count, time))
            return true
        case "I":
            guard let id = DuelID(first) else { break }
            if !duels.contains(id) { duels.append(id) }
            return true
        case "C":
            guard let id = DuelID(first), words.count == 2,
                let side = TrialStreams.Side(rawValue: String(words[0])),
                let time = Int64(words[1])
            else { break }
            counting[id, default: [:]][side] = min(counting[id]?[side] ?? time, time)
            return true
        case "R":
            guard let id = DuelID(first) else { break }
            results[id] = rest
            return true
        default: break
        }
        return false
    }
}
