import Foundation

/// Puts a report where the user wants it.
enum ReportWriter {
    static func write(_ report: Report, _ options: ReportOptions) throws {
        let text = Data(TextReport.text(report).utf8)
        let isPiped = options.json == "-"
        // Standard output stays pure JSON if that is what it is for.
        (isPiped ? FileHandle.standardError : FileHandle.standardOutput).write(text)
        if let path = options.json {
            let json = try JSONReport.data(report)
            if isPiped { FileHandle.standardOutput.write(json) } else { try save(json, path) }
        }
        if let path = options.html { try save(Data(HTMLReport.page(report).utf8), path) }
    }

    static func save(_ data: Data, _ path: String) throws {
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
