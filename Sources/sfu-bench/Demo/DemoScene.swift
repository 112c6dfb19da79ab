import Codecs
import Foundation

/// A drawn, moving picture, so that the demo needs no camera; it loops without a seam.
enum DemoScene: Sendable {
    case aurora, harbour, city

    /// In pixels; portrait, as phones are held.
    static let width = 432
    static let height = 768

    /// Draws the scene at a moment of the loop.
    /// - Parameter phase: from 0 to 1.
    func picture(at phase: Double) throws(CodecError) -> Picture {
        // The background is soft, so it is computed with a sixteenth of the pixels and scaled up.
        var soft = try Picture(width: Self.width / 2, height: Self.height / 2)
        for y in stride(from: 0, to: soft.height, by: 2) {
            for x in stride(from: 0, to: soft.width, by: 2) {
                let light = background(
                    Double(x) / Double(soft.width), Double(y) / Double(soft.height), phase * 2 * .pi)
                soft.fill(x: x, y: y, width: 2, height: 2, with: DrawingColor(rgb: light.rgb))
            }
        }
        var picture = try Picture(width: Self.width, height: Self.height)
        try picture.cover(x: 0, y: 0, width: Self.width, height: Self.height, with: soft)
        drawForeground(on: &picture, phase: phase)
        return picture
    }

    // MARK: What is soft

    /// The color of a point of the background.
    /// - Parameters:
    ///   - x: from 0 at the left to 1.
    ///   - y: from 0 at the top to 1.
    ///   - turn: from 0 to 2 π in a loop; only whole multiples of it may be used, or the loop would have a seam.
    private func background(_ x: Double, _ y: Double, _ turn: Double) -> DemoLight {
        switch self {
        case .aurora: Self.aurora(x, y, turn)
        case .harbour: Self.harbour(x, y, turn)
        case .city: Self.city(x, y, turn)
        }
    }

    private static func aurora(_ x: Double, _ y: Double, _ turn: Double) -> DemoLight {
        var light = DemoLight(0.02, 0.03, 0.10).mixed(with: DemoLight(0.03, 0.14, 0.20), y)
        for curtain in 0..<3 {
            let number = Double(curtain)
            let edge =
                0.34 + 0.11 * number + 0.07 * sin(5 * x + turn + 2 * number)
                + 0.03 * sin(11 * x - 2 * turn + number)
            // The lower edge is sharp, and the light fades upwards.
            let above = edge - y
            let glow = above < 0 ? exp(above * 30) : exp(-above * 6)
            let rays = 0.65 + 0.35 * sin(38 * x + 3 * sin(6 * x + turn) + turn * (number + 1))
            let color = DemoLight(0.10 + 0.12 * number, 0.75 - 0.12 * number, 0.35 + 0.12 * number)
            light = light.adding(color, glow * rays * (0.75 - 0.17 * number))
        }
        return light
    }

    private static func harbour(_ x: Double, _ y: Double, _ turn: Double) -> DemoLight {
        let horizon = 0.58
        let (sunX, sunY) = (0.62, horizon - 0.12)
        func sky(_ y: Double) -> DemoLight {
            let low = min(max(y / horizon, 0), 1)
            var light = DemoLight(0.16, 0.18, 0.42).mixed(with: DemoLight(0.98, 0.52, 0.26), low * low)
            let distance = hypot((x - sunX) * 0.56, y - sunY)
            light = light.adding(DemoLight(1, 0.75, 0.40), exp(-distance * 7) * 0.8)
            return light.mixed(with: DemoLight(1, 0.93, 0.72), 0.9 * disc(distance, radius: 0.075))
        }
        guard y > horizon else { return sky(y) }
        // The sea mirrors the sky, distorted by waves that are longer where they are closer.
        let depth = (y - horizon) / (1 - horizon)
        let wave = sin(70 * depth + turn * 3 + 4 * sin(9 * x + turn)) * (0.01 + 0.05 * depth)
        let mirrored = sky(horizon - (y - horizon) * 0.9 + wave)
        let path = exp(-pow((x - sunX) / (0.06 + 0.16 * depth), 2))
        let sparkle = max(sin(150 * depth + 24 * x + turn * 4), 0)
        return mirrored.mixed(with: DemoLight(0.04, 0.07, 0.17), 0.35 + 0.4 * depth)
            .adding(DemoLight(1, 0.7, 0.35), path * sparkle * 0.5)
    }

    private static func city(_ x: Double, _ y: Double, _ turn: Double) -> DemoLight {
        var light = DemoLight(0.03, 0.03, 0.12).mixed(with: DemoLight(0.32, 0.17, 0.34), y * y)
        let moon = hypot((x - 0.26) * 0.56, y - 0.17)
        light = light.adding(DemoLight(0.55, 0.55, 0.75), exp(-moon * 13) * 0.6)
        light = light.mixed(with: DemoLight(0.95, 0.94, 0.86), 0.95 * disc(moon, radius: 0.045))
        let clouds = max(sin(7 * x + turn + 3 * sin(4 * y)) * sin(13 * y - 2), 0)
        return light.adding(DemoLight(0.16, 0.13, 0.24), clouds * 0.5)
    }

    /// How much of a disc is visible at a distance from its center, 0 to 1, with a slightly soft edge.
    private static func disc(_ distance: Double, radius: Double) -> Double {
        min(max((radius - distance) / 0.006, 0), 1)
    }

    // MARK: What is sharp

    private func drawForeground(on picture: inout Picture, phase: Double) {
        switch self {
        case .aurora:
            Self.drawStars(on: &picture, below: 400, phase: phase)
            Self.drawMountains(on: &picture)
        case .harbour: Self.drawBoat(on: &picture, phase: phase)
        case .city:
            Self.drawStars(on: &picture, below: 300, phase: phase)
            Self.drawTowers(on: &picture, phase: phase)
        }
    }

    private static func drawStars(on picture: inout Picture, below limit: Int, phase: Double) {
        // The same seed for each picture: stars must not move.
        var dice = SplitMix64(seed: 7)
        for star in 0..<70 {
            let x = Int.random(in: 0..<width, using: &dice)
            let y = Int.random(in: 0..<limit, using: &dice)
            let twinkle = 0.78 + 0.22 * sin(2 * .pi * (phase * Double(1 + star % 3) + Double(star) / 7))
            picture.fill(
                x: x, y: y, width: 2, height: 2,
                with: DrawingColor(rgb: DemoLight(1, 1, 1).faded(twinkle).rgb))
        }
    }

    private static func drawMountains(on picture: inout Picture) {
        for x in stride(from: 0, to: width, by: 2) {
            let place = Double(x) / Double(width)
            let far = 560 - 70 * abs(sin(4.1 * place + 0.4)) - 26 * abs(sin(13 * place))
            let near = 670 - 60 * abs(sin(3 * place + 2)) - 14 * abs(sin(19 * place))
            picture.fill(x: x, y: Int(far), width: 2, height: height, with: DrawingColor(rgb: 0x0B1B26))
            picture.fill(x: x, y: Int(near), width: 2, height: height, with: DrawingColor(rgb: 0x050C12))
        }
    }

    private static func drawBoat(on picture: inout Picture, phase: Double) {
        let (left, keel) = (90, 570 + Int(5 * sin(2 * .pi * 2 * phase)))
        let dark = DrawingColor(rgb: 0x140F1C)
        for row in stride(from: 0, to: 22, by: 2) {
            picture.fill(x: left + row, y: keel + row, width: 120 - 2 * row, height: 2, with: dark)
        }
        picture.fill(x: left + 58, y: keel - 120, width: 4, height: 120, with: dark)
        for row in stride(from: 0, to: 104, by: 2) {
            picture.fill(
                x: left + 64, y: keel - 114 + row, width: row / 2, height: 2,
                with: DrawingColor(rgb: 0xE9D9C4))
        }
        // A quay with a lantern.
        picture.fill(x: 0, y: 690, width: width, height: 78, with: DrawingColor(rgb: 0x0D0B14))
        picture.fill(x: 350, y: 560, width: 6, height: 132, with: DrawingColor(rgb: 0x0D0B14))
        let glow = 0.85 + 0.15 * sin(2 * .pi * 6 * phase)
        picture.fill(
            x: 342, y: 546, width: 22, height: 18,
            with: DrawingColor(rgb: DemoLight(1, 0.82, 0.48).faded(glow).rgb))
    }

    private static func drawTowers(on picture: inout Picture, phase: Double) {
        // The same seed for each picture: towers and windows must not move.
        var dice = SplitMix64(seed: 30)
        var x = -12
        while x < width {
            let towerWidth = Int.random(in: 22...38, using: &dice) * 2
            let top = Int.random(in: 330...560, using: &dice)
            picture.fill(x: x, y: top, width: towerWidth, height: height, with: DrawingColor(rgb: 0x0C0D1A))
            for row in stride(from: top + 14, to: 690, by: 18) {
                for column in stride(from: x + 8, to: x + towerWidth - 8, by: 14) {
                    let isLit = Int.random(in: 0..<10, using: &dice) < 4
                    let wakes = Double.random(in: 0..<1, using: &dice)
                    let isRestless = Int.random(in: 0..<12, using: &dice) == 0
                    // Some windows are lit for half of the loop.
                    let isOn = isRestless ? cos(2 * .pi * (phase - wakes)) > 0 : isLit
                    picture.fill(
                        x: column, y: row, width: 6, height: 8,
                        with: DrawingColor(rgb: isOn ? 0xF3CF84 : 0x1B1D30))
                }
            }
            x += towerWidth + 6
        }
        picture.fill(x: 0, y: 700, width: width, height: 68, with: DrawingColor(rgb: 0x07070D))
        // Cars cross the picture a whole number of times in a loop.
        for car in 0..<8 {
            let isLeftward = car.isMultiple(of: 2)
            let place = (phase * Double(1 + car % 2) + Double(car) / 8).truncatingRemainder(dividingBy: 1)
            let x = Int((isLeftward ? 1 - place : place) * Double(width + 40)) - 20
            picture.fill(
                x: x, y: isLeftward ? 716 : 738, width: 14, height: 4,
                with: DrawingColor(rgb: isLeftward ? 0xFFF4D0 : 0xE2413C))
        }
    }
}

/// Red, green and blue light; values from 0 to 1 can be displayed.
struct DemoLight: Equatable {
    var red: Double
    var green: Double
    var blue: Double

    init(_ red: Double, _ green: Double, _ blue: Double) {
        (self.red, self.green, self.blue) = (red, green, blue)
    }

    /// A mixture with `share` of the other light, 0 to 1.
    func mixed(with other: DemoLight, _ share: Double) -> DemoLight {
        faded(1 - share).adding(other, share)
    }

    func adding(_ other: DemoLight, _ share: Double) -> DemoLight {
        DemoLight(red + other.red * share, green + other.green * share, blue + other.blue * share)
    }

    func faded(_ share: Double) -> DemoLight { DemoLight(red * share, green * share, blue * share) }

    /// As 0xRRGGBB; values that are too bright are clipped.
    var rgb: UInt32 {
        func byte(_ value: Double) -> UInt32 { UInt32(min(max(value, 0), 1) * 255) }
        return byte(red) << 16 | byte(green) << 8 | byte(blue)
    }
}
