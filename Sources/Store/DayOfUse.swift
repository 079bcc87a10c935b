package import Clocks

extension Grant {
    /// The day of the last refresh, or of the first connection where there was none.
    ///
    /// Stores look for idle grants by it: an index of days moves once a day, and not with each refresh.
    package var dayOfUse: Int64 { (lastSuccessAt ?? createdAt).day }
}

extension Timestamp {
    /// How many whole days lie between 1970 and this instant, in UTC; below 0 before.
    package var day: Int64 {
        let length: Int64 = 86_400_000
        return milliseconds >= 0 ? milliseconds / length : (milliseconds - length + 1) / length
    }
}
