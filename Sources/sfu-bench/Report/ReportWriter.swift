import Foundation

/// Puts a report where the user wants it.
enum ReportWriter {
    static func write(_ report: Report, _ options: ReportOptions) throws {
        try write(TextReport.text(report), report, options)
        if let path = options.html { try save(Data(HTMLReport.page(report).utf8), path) }
    }

    /// Writes a report for the terminal, and as JSON where the user wants it.
    static func write(_ text: String, _ report: some Encodable, _ options: ReportOptions) throws {
        let isPiped = options.json == "-"
        // Standard output stays pure JSON if that is what it is for.
        (isPiped ? FileHandle.standardError : FileHandle.standardOutput).write(Data(text.utf8))
        if let path = options.json {
            let json = try JSONReport.data(report)
            if isPiped { FileHandle.standardOutput.write(json) } else { try save(json, path) }
        }
    }

    private static func save(_ data: Data, _ path: String) throws {
        do {
            try data.write(to: URL(fileURLWithPath: path))
        } catch {
            throw RunFailure(description: "cannot write \(path): \((error as NSError).localizedDescription)")
        }
    }
}

extension Report.Verdict {
    var exitCode: ExitCode {
        if !failures.isEmpty { return .failure }
        return isVoid ? .void : .success
    }
}
