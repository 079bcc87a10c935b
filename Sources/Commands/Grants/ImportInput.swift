import Worker

/// The part of an import's input that is not stored yet.
struct ImportInput<Imported> {
    var splitter = RecordSplitter()
    var batch: [(line: Int, reading: Result<Imported, ImportProblem>)] = []
}
