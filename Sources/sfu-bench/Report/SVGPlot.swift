/// A line plot as inline SVG, with axes, a grid, a legend, and one line for each series.
struct SVGPlot {
    struct Line {
        var label: String
        /// In ascending order of x; a missing value has no point, and the line goes straight across.
        var points: [(x: Double, y: Double)]
    }

    enum Scale {
        case linear
        /// Base ten; values must be positive.
        case logarithmic
    }

    var title: String
    var xLabel: String
    var yLabel: String
    var lines: [Line]
    var xScale = Scale.linear
    /// The measured part of the x axis, which is shaded; nil for none.
    var highlighted: ClosedRange<Double>?

    /// Sizes and margins, in the units of the SVG's view box.
    private static let width = 720.0
    private static let height = 260.0
    private static let left = 62.0
    private static let right = 16.0
    private static let top = 34.0
    private static let bottom = 44.0
    /// Points drawn of one line; of longer series every nth point is drawn.
    private static let maximumPoints = 2_000

    /// - Returns: an `<svg>` element, or a note if there is nothing to draw.
    var svg: String {
        let all = lines.flatMap(\.points).filter { $0.x.isFinite && $0.y.isFinite }
        guard let x = range(of: all.map(\.x)), let highest = all.map(\.y).max() else {
            return "<p class=\"empty\">\(HTMLText.escaped(title)): nothing measured</p>"
        }
        // If all values are zero, the axis ends at 1.
        let top = highest > 0 ? Self.niceCeiling(highest) : 1
        var parts = [
            "<svg viewBox=\"0 0 \(Int(Self.width)) \(Int(Self.height))\" role=\"img\" aria-label=\"\(HTMLText.escaped(title))\">",
            text(Self.left, 18, title, "title"),
        ]
        if let highlighted { parts.append(shade(highlighted, x)) }
        parts += grid(x, top)
        for (index, line) in lines.enumerated() { parts.append(path(line, index, x, top)) }
        parts += legend
        parts.append("</svg>")
        return parts.joined(separator: "\n")
    }

    // MARK: Scales

    /// The range of the x axis, which is never empty; nil without values.
    private func range(of values: [Double]) -> ClosedRange<Double>? {
        let usable = xScale == .logarithmic ? values.filter { $0 > 0 } : values
        guard let low = usable.min(), let high = usable.max() else { return nil }
        guard high > low else { return xScale == .logarithmic ? (low / 2)...(high * 2) : low...(low + 1) }
        return low...high
    }

    /// Horizontal position of a value.
    private func across(_ value: Double, _ x: ClosedRange<Double>) -> Double {
        let share =
            switch xScale {
            case .linear: (value - x.lowerBound) / (x.upperBound - x.lowerBound)
            case .logarithmic:
                Self.decades(from: x.lowerBound, to: value)
                    / Self.decades(from: x.lowerBound, to: x.upperBound)
            }
        return Self.left + min(max(share, 0), 1) * (Self.width - Self.left - Self.right)
    }

    /// Vertical position of a value; the y axis begins at 0 and ends at `top`.
    private func down(_ value: Double, _ top: Double) -> Double {
        let share = min(max(value / top, 0), 1)
        return Self.height - Self.bottom - share * (Self.height - Self.top - Self.bottom)
    }

    private static func decades(from low: Double, to high: Double) -> Double {
        LogScale.log10(max(high, low) / low)
    }

    /// The next larger one of 1, 2, 2.5, 5 and 10 times a power of ten.
    static func niceCeiling(_ value: Double) -> Double {
        let power = LogScale.powerOfTen(below: value)
        // The last factor tolerates rounding errors, by which 0.2 could become 0.25.
        for factor in [1, 2, 2.5, 5, 10] where value <= factor * power * 1.000_001 { return factor * power }
        return 10 * power
    }

    // MARK: Parts

    private func grid(_ x: ClosedRange<Double>, _ top: Double) -> [String] {
        var parts: [String] = []
        for step in 0...4 {
            let value = top * Double(step) / 4
            let y = down(value, top)
            parts.append(
                "<line class=\"grid\" x1=\"\(at(Self.left))\" y1=\"\(at(y))\" x2=\"\(at(Self.width - Self.right))\" y2=\"\(at(y))\"/>"
            )
            parts.append(text(Self.left - 6, y + 4, Format.short(value), "tick end"))
        }
        for value in ticks(x) {
            let position = across(value, x)
            parts.append(text(position, Self.height - Self.bottom + 16, Format.short(value), "tick middle"))
        }
        let middle = (Self.left + Self.width - Self.right) / 2
        parts.append(text(middle, Self.height - 8, xLabel, "axis middle"))
        parts.append(text(Self.width - Self.right, 18, yLabel, "axis end"))
        return parts
    }

    /// Round values on the x axis; their number is bounded, whatever the range.
    private func ticks(_ x: ClosedRange<Double>) -> [Double] {
        switch xScale {
        case .linear:
            let step = Self.niceCeiling((x.upperBound - x.lowerBound) / 8)
            var ticks: [Double] = []
            var value = (x.lowerBound / step).rounded(.up) * step
            while value <= x.upperBound, ticks.count < 12 {
                ticks.append(value)
                value += step
            }
            return ticks
        case .logarithmic:
            var ticks: [Double] = []
            var value = LogScale.powerOfTen(below: x.lowerBound)
            while value <= x.upperBound, ticks.count < 14 {
                if value >= x.lowerBound { ticks.append(value) }
                value *= 10
            }
            return ticks
        }
    }

    private func path(_ line: Line, _ index: Int, _ x: ClosedRange<Double>, _ top: Double) -> String {
        let points = line.points.filter { $0.x.isFinite && $0.y.isFinite && (xScale == .linear || $0.x > 0) }
        guard !points.isEmpty else { return "" }
        let every = (points.count + Self.maximumPoints - 1) / Self.maximumPoints
        let drawn = points.enumerated().filter { $0.offset % every == 0 }.map(\.element)
        let places = drawn.map { "\(at(across($0.x, x))),\(at(down($0.y, top)))" }
        return "<polyline class=\"line l\(index % 4)\" points=\"\(places.joined(separator: " "))\"/>"
    }

    private func shade(_ range: ClosedRange<Double>, _ x: ClosedRange<Double>) -> String {
        let start = across(range.lowerBound, x)
        let end = across(range.upperBound, x)
        let height = Self.height - Self.top - Self.bottom
        return
            "<rect class=\"measured\" x=\"\(at(start))\" y=\"\(at(Self.top))\" width=\"\(at(max(end - start, 0)))\" height=\"\(at(height))\"/>"
    }

    private var legend: [String] {
        guard lines.count > 1 else { return [] }
        // Labels get 7 units for each character, as the width of text is unknown here.
        var x = Self.left + 250
        return lines.enumerated().flatMap { index, line in
            defer { x += 34 + 7 * Double(line.label.count) }
            return [
                "<line class=\"line l\(index % 4)\" x1=\"\(at(x))\" y1=\"14\" x2=\"\(at(x + 18))\" y2=\"14\"/>",
                text(x + 23, 18, line.label, "axis"),
            ]
        }
    }

    private func text(_ x: Double, _ y: Double, _ words: String, _ style: String) -> String {
        "<text class=\"\(style)\" x=\"\(at(x))\" y=\"\(at(y))\">\(HTMLText.escaped(words))</text>"
    }

    /// Coordinates with one decimal place keep a page of many points small.
    private func at(_ value: Double) -> String { Format.fixed(value, 1) }
}
