//! A plot of a simulation, as SVG: what was allowed and what was in flight over time, and what the service
//! could use. Readable on light and on dark pages.

use std::fmt::Write;
use tidegate::pacer::scenario::{Point, Trace};

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 340.0;
/// Around the part with the lines: top, right, bottom, left.
const MARGIN: [f64; 4] = [64.0, 20.0, 48.0, 60.0];
/// About so many numbers on an axis.
const TICKS: f64 = 6.0;

const STYLE: &str = "\
text { font: 12px system-ui, sans-serif; fill: #333 }
.title { font-size: 14px; font-weight: 600 }
.grid { stroke: #ddd }
.line { fill: none; stroke-width: 1.6; stroke-linejoin: round }
.capacity { stroke: #777; stroke-dasharray: 6 4 }
.level { stroke: #0b6bcb }
.flight { stroke: #d1570a }
@media (prefers-color-scheme: dark) {
svg { background: #16181c }
text { fill: #d5d8dc }
.grid { stroke: #353a42 }
.capacity { stroke: #a0a6ae }
.level { stroke: #6cb2ff }
.flight { stroke: #ff9d5c }
}";

/// The plot of a trace.
pub fn plot(name: &str, policy: &str, trace: &Trace) -> String {
    let axes = Axes::over(trace);
    let [top, _, _, left] = MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\">\n\
         <title>{title}</title>\n<style>\n{STYLE}\n</style>\n\
         <text class=\"title\" x=\"{left}\" y=\"22\">{title}</text>\n",
        title = escaped(&format!("{name} (policy {policy})")),
    );
    axes.draw(&mut svg);
    let legend =
        [("capacity", "capacity of the service"), ("level", "level"), ("flight", "in flight")];
    let mut x = left;
    for (class, text) in legend {
        line(&mut svg, class, &format!("M{x:.1} {y:.1}h22", y = top - 18.0));
        let _ = writeln!(svg, "<text x=\"{:.1}\" y=\"{:.1}\">{text}</text>", x + 28.0, top - 14.0);
        x += 60.0 + 7.0 * text.len() as f64;
    }
    line(&mut svg, "capacity", &axes.steps(&trace.capacity));
    line(&mut svg, "level", &axes.means(trace, |point| point.limit));
    line(&mut svg, "flight", &axes.means(trace, |point| point.in_flight));
    svg.push_str("</svg>");
    svg
}

fn line(svg: &mut String, class: &str, path: &str) {
    let _ = writeln!(svg, "<path class=\"line {class}\" d=\"{path}\"/>");
}

/// What the axes show.
struct Axes {
    seconds: f64,
    most: f64,
}

impl Axes {
    fn over(trace: &Trace) -> Self {
        let seconds = trace.resolution.as_secs_f64() * trace.points.len() as f64;
        let values = trace.points.iter().flat_map(|point| [point.limit, point.in_flight]);
        let began = trace.capacity.iter().filter(|(at, _)| *at < seconds);
        let most = values.chain(began.map(|(_, most)| *most)).fold(1.0, f64::max);
        Self { seconds: seconds.max(1e-3), most: 1.05 * most }
    }

    fn x(&self, seconds: f64) -> f64 {
        let [_, right, _, left] = MARGIN;
        left + (WIDTH - left - right) * (seconds / self.seconds).min(1.0)
    }

    fn y(&self, value: f64) -> f64 {
        let [top, _, bottom, _] = MARGIN;
        HEIGHT - bottom - (HEIGHT - top - bottom) * value / self.most
    }

    fn draw(&self, svg: &mut String) {
        let [top, right, bottom, left] = MARGIN;
        let (end, floor) = (WIDTH - right, HEIGHT - bottom);
        for value in ticks(self.most) {
            let y = self.y(value);
            let _ = writeln!(
                svg,
                "<path class=\"grid\" d=\"M{left} {y:.1}H{end}\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{value}</text>",
                left - 6.0,
                y + 4.0
            );
        }
        for seconds in ticks(self.seconds) {
            let x = self.x(seconds);
            let _ = writeln!(
                svg,
                "<path class=\"grid\" d=\"M{x:.1} {top}V{floor}\"/>\
                 <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{seconds}</text>",
                floor + 16.0
            );
        }
        let (middle, low) = ((left + end) / 2.0, HEIGHT - 10.0);
        let half = (top + floor) / 2.0;
        let _ = writeln!(
            svg,
            "<text x=\"{middle}\" y=\"{low}\" text-anchor=\"middle\">seconds</text>\n\
             <text transform=\"translate(16 {half}) rotate(-90)\" text-anchor=\"middle\">requests</text>"
        );
    }

    /// A value that stays until the next one.
    fn steps(&self, values: &[(f64, f64)]) -> String {
        let mut path = String::new();
        for (at, value) in values.iter().filter(|(at, _)| *at < self.seconds) {
            let (x, y) = (self.x(*at), self.y(*value));
            let _ = match path.is_empty() {
                true => write!(path, "M{x:.1} {y:.1}"),
                false => write!(path, "H{x:.1}V{y:.1}"),
            };
        }
        let _ = write!(path, "H{:.1}", self.x(self.seconds));
        path
    }

    /// Means over short times, each drawn in its middle.
    fn means(&self, trace: &Trace, value: impl Fn(&Point) -> f64) -> String {
        let mut path = String::new();
        for (index, point) in trace.points.iter().enumerate() {
            let at = trace.resolution.as_secs_f64() * (index as f64 + 0.5);
            let letter = if index == 0 { 'M' } else { 'L' };
            let _ = write!(path, "{letter}{:.1} {:.1}", self.x(at), self.y(value(point)));
        }
        path
    }
}

/// Round numbers from 0 up to the end of an axis.
fn ticks(end: f64) -> Vec<f64> {
    let raw = end / TICKS;
    let magnitude = 10_f64.powf(raw.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|step| step * magnitude);
    let step = step.into_iter().find(|step| *step >= raw).unwrap_or(raw);
    let digits = (-magnitude.log10()).max(0.0);
    let unit = 10_f64.powf(digits);
    (0..=(end / step) as u32).map(|n| (f64::from(n) * step * unit).round() / unit).collect()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate::pacer::scenario::{AnyPolicy, Scenario};

    #[test]
    fn ticks_are_round() {
        assert_eq!(ticks(10.3), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(ticks(0.33), [0.0, 0.1, 0.2, 0.3]);
        assert_eq!(ticks(230.0), [0.0, 50.0, 100.0, 150.0, 200.0]);
    }

    #[test]
    fn a_plot_shows_three_lines_and_labels() {
        let text = "name = \"a < b\"\nrequests = 40\n[service]\ndelay = 0.1
            [service.concurrency]\nlimit = 4\n[[change]]\nat = 0.5\nconcurrency = { limit = 2 }";
        let scenario: Scenario = text.parse().unwrap();
        let (_, trace) = scenario.trace_as(AnyPolicy::BoundA);
        let svg = plot(&scenario.name, "bound:a", &trace);
        assert_eq!(svg.matches("class=\"line").count(), 6);
        assert!(svg.contains("a &lt; b (policy bound:a)") && !svg.contains("NaN"));
        for label in ["seconds", "requests", "level", "in flight", "capacity of the service"] {
            assert!(svg.contains(&format!(">{label}</text>")), "{label}");
        }
    }
}
