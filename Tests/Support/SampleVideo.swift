import Foundation
import Wire

/// Pictures whose colours are known, encoded by ffmpeg: red, green, blue and white in the four quarters.
package enum SampleVideo {
    package struct Failure: Error {
        let output: String
    }

    /// The quarters as BT.601 video has them: top left, top right, bottom left, bottom right.
    package static let quarters: [(luma: UInt8, u: UInt8, v: UInt8)] = [
        (81, 90, 240), (145, 54, 34), (41, 240, 110), (235, 128, 128),
    ]

    /// Frames as RTP carries them, each whole; the first is a key frame.
    /// - Parameters:
    ///   - crop: columns and rows that are cut off.
    ///   - group: from one key frame to the next.
    ///   - pixels: as ffmpeg names them; of more than 8 bits for VP9, AV1 and HEVC alone.
    package static func frames(
        _ codec: VideoCodec, width: Int = 640, height: Int = 360, crop: Int = 0, count: Int = 1,
        group: Int = 300, pixels: String = "yuv420p"
    ) throws -> [[UInt8]] {
        let encoder =
            switch codec {
            case .vp8: ["-c:v", "libvpx", "-deadline", "realtime", "-cpu-used", "8", "-b:v", "1M"]
            case .vp9: ["-c:v", "libvpx-vp9", "-deadline", "realtime", "-cpu-used", "8", "-b:v", "1M"]
            case .h264: ["-c:v", "libx264", "-tune", "zerolatency", "-x264-params", "aud=1:bframes=0"]
            case .hevc:
                ["-c:v", "libx265", "-preset", "ultrafast", "-x265-params", "aud=1:bframes=0:log-level=none"]
            case .av1: ["-c:v", "libaom-av1", "-usage", "realtime", "-cpu-used", "8", "-b:v", "1M"]
            }
        let bytes = try ffmpeg(
            input(width: width, height: height, crop: crop)
                + ["-frames:v", "\(count)", "-pix_fmt", pixels, "-g", "\(group)"] + encoder
                + ["-f", codec == .h264 ? "h264" : codec == .hevc ? "hevc" : "ivf", "-"])
        return switch codec {
        case .h264: accessUnits(bytes) { $0 & 0x1F == 9 }
        case .hevc: accessUnits(bytes) { $0 >> 1 & 0x3F == 35 }
        case .vp8, .vp9, .av1: ivfFrames(bytes)
        }
    }

    /// Frames of H.264 in high profile, each with three B-frames after it in one order and before it in the other
    /// (I P B B B P B B B), which grow brighter; the first is a key frame.
    package static func reorderedFrames(count: Int) throws -> [[UInt8]] {
        let bytes = try ffmpeg([
            "-f", "lavfi", "-i",
            "color=c=black:s=320x180:r=30,format=yuv420p,geq=lum='mod(16+N*8\\,232)':cb=128:cr=128",
            "-frames:v", "\(count)", "-g", "300", "-c:v", "libx264", "-profile:v", "high", "-preset",
            "fast",
            "-x264-params", "aud=1:bframes=3:b-adapt=0:b-pyramid=none:scenecut=0:sliced-threads=0", "-f",
            "h264", "-",
        ])
        return accessUnits(bytes) { $0 & 0x1F == 9 }
    }

    /// Frames of HEVC in groups of 40, each with up to three B-frames before it in the order in which they are shown,
    /// and the place of each in that.
    package static func reorderedHEVC(count: Int) throws -> [(frame: [UInt8], place: Int)] {
        let bytes = try ffmpeg(
            input(width: 320, height: 180, crop: 0)
                + [
                    "-frames:v", "\(count)", "-pix_fmt", "yuv420p", "-g", "40", "-c:v", "libx265", "-preset",
                    "ultrafast", "-x265-params",
                    "aud=1:bframes=3:b-adapt=0:b-pyramid=0:scenecut=0:open-gop=0:min-keyint=40:log-level=none",
                    "-f", "hevc", "-",
                ])
        let frames = accessUnits(bytes) { $0 >> 1 & 0x3F == 35 }
        var places: [Int] = []
        for start in stride(from: 0, to: count, by: 40) {
            places.append(start)
            var last = start
            while last < min(start + 39, count - 1) {
                let next = min(last + 4, start + 39, count - 1)
                places.append(next)
                places += (last + 1)..<next
                last = next
            }
        }
        return zip(frames, places).map { (frame: $0, place: $1) }
    }

    /// What ffmpeg writes on its standard output.
    package static func ffmpeg(_ arguments: [String], input: [UInt8] = []) throws -> [UInt8] {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/ffmpeg")
        process.arguments = ["-nostdin", "-loglevel", "error"] + arguments
        // A file, because a pipe that is not emptied would hold ffmpeg up.
        let output = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        let source = output.appendingPathExtension("input")
        try Data().write(to: output)
        try Data(input).write(to: source)
        defer {
            try? FileManager.default.removeItem(at: output)
            try? FileManager.default.removeItem(at: source)
        }
        process.standardOutput = try FileHandle(forWritingTo: output)
        process.standardInput = try FileHandle(forReadingFrom: source)
        try process.run()
        process.waitUntilExit()
        let bytes = try [UInt8](Data(contentsOf: output))
        guard process.terminationStatus == 0 else {
            throw Failure(output: "ffmpeg \(arguments.joined(separator: " "))")
        }
        return bytes
    }

    private static func input(width: Int, height: Int, crop: Int) -> [String] {
        let size = "s=\(width / 2)x\(height / 2):r=30"
        let colours = ["red", "lime", "blue", "white"].enumerated()
            .map { "color=c=\($1):\(size)[q\($0)]" }.joined(separator: ";")
        return [
            "-f", "lavfi", "-i",
            "\(colours);[q0][q1]hstack[top];[q2][q3]hstack[low];"
                + "[top][low]vstack,format=yuv444p,crop=\(width - crop):\(height - crop):0:0:exact=1",
        ]
    }

    private static func ivfFrames(_ file: [UInt8]) -> [[UInt8]] {
        var frames: [[UInt8]] = []
        var place = 32
        while place + 12 <= file.count {
            let size = (0..<4).reduce(0) { $0 | Int(file[place + $1]) << (8 * $1) }
            let end = min(place + 12 + size, file.count)
            frames.append(Array(file[(place + 12)..<end]))
            place = end
        }
        return frames
    }

    /// Cuts a stream before each access unit delimiter, which its first byte tells.
    private static func accessUnits(_ stream: [UInt8], isDelimiter: (UInt8) -> Bool) -> [[UInt8]] {
        var starts: [Int] = []
        for place in stream.indices.dropLast(4)
        where stream[place..<(place + 4)].elementsEqual([0, 0, 0, 1]) && isDelimiter(stream[place + 4]) {
            starts.append(place)
        }
        return zip(starts, starts.dropFirst() + [stream.count]).map { Array(stream[$0..<$1]) }
    }
}
