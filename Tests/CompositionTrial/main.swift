import Base
import CLinux
import Codecs
import Foundation
import Transcoder

// Composes so many speakers in real time, and says what it cost: processor time of this process, which does nothing
// else meanwhile (what speakers send was encoded before), and from the arrival of a picture until it leaves composed.
// usage: composition-trial SPEAKERS SECONDS [SPEAKER-WIDTH SPEAKER-HEIGHT]

let arguments = CommandLine.arguments.dropFirst().compactMap { Int($0) }
guard arguments.count >= 2 else {
    print("usage: composition-trial SPEAKERS SECONDS [SPEAKER-WIDTH SPEAKER-HEIGHT]")
    exit(2)
}
let (count, seconds) = (arguments[0], arguments[1])
let (width, height) = arguments.count >= 4 ? (arguments[2], arguments[3]) : (640, 360)

func now() -> MonotonicTime { MonotonicTime(nanoseconds: clinux_monotonic_nanoseconds()) }

/// Two seconds of a speaker, to be sent again and again: a picture in which much moves, and a voice of sorts.
struct Recording {
    /// VP8 frames as RTP payloads; the first is a key frame.
    var frames: [[[UInt8]]] = []
    var sounds: [[UInt8]] = []

    init(_ number: Int) throws {
        let encoder = try VP8Encoder(
            .init(width: width, height: height, framesPerSecond: 30, bitrate: 600_000))
        var noise: UInt64 = UInt64(number) &+ 1
        for frame in 0..<60 {
            var picture = try Picture(width: width, height: height, luma: 90, u: 120, v: 140)
            // Like a head that moves before a wall: a third of the picture changes.
            for row in 0..<24 {
                for column in 0..<12 {
                    noise = noise &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                    let shift = Int(20 * sin(Double(frame) / 9 + Double(number)))
                    let luma = UInt8(60 + (row * 7 + column * 11 + Int(noise >> 60)) % 120)
                    picture.fill(
                        x: width / 3 + shift + column * width / 36, y: height / 5 + row * height / 32,
                        width: width / 36, height: height / 32,
                        with: DrawingColor(luma: luma, u: UInt8(100 + column * 4), v: UInt8(150 - row)))
                }
            }
            let encoded = try encoder.encode(
                picture, timestamp: Int64(frame) * 3_000, isKeyFrame: frame == 0)
            guard let encoded else { continue }
            // A descriptor of one byte: the beginning of a partition, or its continuation.
            frames.append(
                stride(from: 0, to: encoded.bytes.count, by: 1_100).map { start in
                    [start == 0 ? 0x10 : 0x00]
                        + encoded.bytes[start..<min(start + 1_100, encoded.bytes.count)]
                })
        }
        let voice = try OpusEncoder(bitrate: 32_000)
        for block in 0..<100 {
            let sound = (0..<960).flatMap { index -> [Float] in
                let time = Double(block * 960 + index) / 48_000
                let value = Float(0.2 * sin(time * Double(700 + number * 170)) * (1 + sin(time * 20)))
                return [value, value]
            }
            sounds.append(try voice.encode(sound))
        }
    }
}

let recordings = try (0..<count).map { try Recording($0) }
var people: [CompositionSpeaker] = []
for index in 0..<count {
    var person = CompositionSpeaker(id: "\(index)", name: "Speaker \(index + 1)")
    person.video = UInt64(index * 2)
    person.audio = UInt64(index * 2 + 1)
    person.isSpeaking = index == 0
    people.append(person)
}
let start = now()
let composition = Composition(
    CompositionScene(settings: CompositionSettings(), speakers: people), seed: 1, at: start)
var videoSequence = [Int64](repeating: 1, count: count)
var (videoTurn, audioTurn) = (0, 0)
var statuses: [CompositionStatus] = []
var latencies: [Double] = []
var nextStatus = start + .seconds(3)
var processor: Int64 = 0
var measuredFrom = start
while true {
    let videoDue = start.advanced(byNanoseconds: Int64(videoTurn) * 1_000_000_000 / 30)
    let audioDue = start.advanced(byNanoseconds: Int64(audioTurn) * 20_000_000)
    let due = min(composition.deadline, videoDue, audioDue)
    let wait = due.nanoseconds(since: now())
    if wait > 0 { Thread.sleep(forTimeInterval: Double(wait) / 1e9) }
    let began = now()
    if began >= videoDue {
        for (index, recording) in recordings.enumerated() {
            let frame = recording.frames[videoTurn % recording.frames.count]
            for (place, payload) in frame.enumerated() {
                composition.receive(
                    InputPacket(
                        sequenceNumber: videoSequence[index],
                        timestamp: UInt32(truncatingIfNeeded: videoTurn * 3_000),
                        marker: place == frame.count - 1, codec: .vp8,
                        isEntryPoint: place == 0 && videoTurn.isMultiple(of: recording.frames.count),
                        arrival: began, captured: videoDue, payload: payload),
                    of: UInt64(index * 2), at: began)
                videoSequence[index] += 1
            }
        }
        videoTurn += 1
    }
    if began >= audioDue {
        for (index, recording) in recordings.enumerated() {
            composition.receive(
                InputPacket(
                    sequenceNumber: Int64(audioTurn), timestamp: UInt32(truncatingIfNeeded: audioTurn * 960),
                    marker: false, codec: .opus, isEntryPoint: true, arrival: began, captured: audioDue,
                    payload: recording.sounds[audioTurn % recording.sounds.count]),
                of: UInt64(index * 2 + 1), at: began)
        }
        audioTurn += 1
    }
    _ = composition.advance(to: now())
    let time = now()
    composition.note(cost: time - began, at: time)
    guard time >= nextStatus else { continue }
    let status = composition.takeStatus(at: time)
    // The first seconds are for warming up.
    if processor == 0 {
        processor = clinux_process_nanoseconds()
        measuredFrom = time
    } else {
        statuses.append(status)
        latencies.append(status.latencyHighMilliseconds)
    }
    nextStatus = time + .seconds(1)
    if time >= start + .seconds(seconds + 3) { break }
}
let cores =
    Double(clinux_process_nanoseconds() - processor) / Double(now().nanoseconds(since: measuredFrom))
latencies.sort()
func text(_ value: Double) -> String { String(format: "%.2f", value) }
let rates = statuses.map(\.framesPerSecond).sorted()
let medians = statuses.map(\.latencyMedianMilliseconds).sorted()
print(
    "speakers=\(count) of \(width)x\(height), cores=\(text(cores)),",
    "fps=\(text(rates[rates.count / 2])) at \(statuses.last?.width ?? 0)x\(statuses.last?.height ?? 0),",
    "level=\(statuses.map(\.level).max() ?? 0), latency ms median=\(text(medians[medians.count / 2]))",
    "p95=\(text(latencies[latencies.count * 95 / 100])), kbit/s=\((statuses.last?.bitrate ?? 0) / 1_000)")
