enum HTMLReport { static func page(_ report: Report) -> String { TextReport.text(report) } }
