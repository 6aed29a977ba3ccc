//! A recipe: a TOML file that describes how a program is measured.

use super::metric::MetricOf;
use super::{ProgramError, phase};
use seekwell_core::suggest;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// What happens to the cached pages of the recipe's files between prepare and run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cache {
    /// The pages are written back and dropped, so that the run starts with a cold cache.
    #[default]
    Drop,
    /// The pages are kept in the cache.
    Keep,
}

/// Describes how a program is measured.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// Name of the recipe on the command line.
    pub name: String,
    /// Description in one sentence.
    #[serde(default)]
    pub about: String,
    /// Programs that the recipe needs, each with its Debian package.
    #[serde(default)]
    pub needs: BTreeMap<String, String>,
    /// Directories that are searched for programs in addition to PATH. `*` matches one name. If
    /// several directories match, the last is used.
    #[serde(default)]
    pub paths: Vec<String>,
    /// User who runs the program if Seekwell runs as root, because some programs refuse to run as
    /// root.
    #[serde(default)]
    pub user: Option<String>,
    /// Parameters with their defaults. They become variables of the scripts.
    #[serde(default)]
    pub params: BTreeMap<String, toml::Value>,
    /// Whether the program reads the block device `$device` directly.
    #[serde(default)]
    pub device: bool,
    /// Script that prints the version of the program.
    #[serde(default)]
    pub version: String,
    /// Script that runs before the measured script. It is not measured.
    #[serde(default)]
    pub prepare: String,
    /// What happens to the cached pages of the recipe's files after the prepare script.
    #[serde(default)]
    pub cache: Cache,
    /// Script that is measured.
    pub run: String,
    /// Script that runs after the measured script, even after a failure.
    #[serde(default)]
    pub clean_up: String,
    /// Metrics, starting with the main metric. If the list is empty, the run time is the metric.
    #[serde(default, rename = "metric")]
    pub metrics: Vec<MetricOf>,
}

/// Reasons why a recipe cannot be used.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum RecipeError {
    /// The text is not a valid recipe.
    #[error("{0}: {1}")]
    Text(String, String),
    /// The recipe has no such parameter.
    #[error("{recipe} has no parameter \"{name}\"{hint}")]
    Param {
        /// Name of the recipe.
        recipe: String,
        /// Name of the parameter that the user gave.
        name: String,
        /// A suggestion of what the user may have meant.
        hint: String,
    },
}

const TEXTS: &[(&str, &str)] = &[
    ("dbench", include_str!("../../recipes/dbench.toml")),
    ("fs_mark", include_str!("../../recipes/fs_mark.toml")),
    ("hdparm", include_str!("../../recipes/hdparm.toml")),
    ("ioping", include_str!("../../recipes/ioping.toml")),
    (
        "mariadb-scan",
        include_str!("../../recipes/mariadb-scan.toml"),
    ),
    ("nginx", include_str!("../../recipes/nginx.toml")),
    ("nginx-wrk", include_str!("../../recipes/nginx-wrk.toml")),
    ("pgbench", include_str!("../../recipes/pgbench.toml")),
    ("postmark", include_str!("../../recipes/postmark.toml")),
    ("sqlite3", include_str!("../../recipes/sqlite3.toml")),
    ("sysbench", include_str!("../../recipes/sysbench.toml")),
    ("compile", include_str!("../../recipes/compile.toml")),
];

/// Returns all built-in recipes.
pub fn recipes() -> Vec<Recipe> {
    let all = TEXTS.iter();
    all.filter_map(|(name, text)| Recipe::parse(name, text).ok())
        .collect()
}

/// Returns the text of a built-in recipe, so that users can copy it.
pub fn find(name: &str) -> Option<&'static str> {
    TEXTS.iter().find(|t| t.0 == name).map(|t| t.1)
}

impl Recipe {
    /// Parses a recipe. `from` is its name in error messages.
    ///
    /// # Errors
    /// Returns the error in the text.
    pub fn parse(from: &str, text: &str) -> Result<Recipe, RecipeError> {
        let bad = |why: String| RecipeError::Text(from.to_owned(), why);
        let mut recipe: Recipe =
            toml::from_str(text).map_err(|e| bad(e.to_string().trim().to_owned()))?;
        if recipe.name.is_empty() || recipe.run.trim().is_empty() {
            return Err(bad("a recipe needs `name` and `run`".to_owned()));
        }
        let plain = |n: &str| n.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        for (name, value) in &recipe.params {
            let reserved = ["dir", "device", "seed", "threads", "path"];
            if name.is_empty() || !plain(name) || reserved.contains(&name.as_str()) {
                return Err(bad(format!(
                    "params.{name}: use small letters, and none of the names {}",
                    reserved.join(", ")
                )));
            }
            if value.is_table() || value.is_array() {
                return Err(bad(format!("params.{name}: must be a text or a number")));
            }
        }
        if recipe.metrics.is_empty() {
            recipe.metrics.push(MetricOf::duration());
        }
        for m in &recipe.metrics {
            m.check()
                .map_err(|why| bad(format!("metric {}: {why}", m.name)))?;
        }
        Ok(recipe)
    }

    /// Returns a recipe for a command line. Its metric is the run time, or a number in the output.
    pub fn command(line: &str, metric: Option<MetricOf>) -> Recipe {
        Recipe {
            name: "cmd".to_owned(),
            about: line.to_owned(),
            needs: BTreeMap::new(),
            paths: Vec::new(),
            user: None,
            params: BTreeMap::new(),
            device: false,
            version: String::new(),
            prepare: String::new(),
            cache: Cache::Drop,
            run: line.to_owned(),
            clean_up: String::new(),
            metrics: vec![metric.unwrap_or_else(MetricOf::duration)],
        }
    }

    /// Returns the values of all parameters: the given values, and the defaults of the others.
    ///
    /// # Errors
    /// The recipe does not have such a parameter.
    pub fn params(
        &self,
        given: &BTreeMap<String, String>,
    ) -> Result<BTreeMap<String, String>, RecipeError> {
        let said = |v: &toml::Value| match v {
            toml::Value::String(s) => s.clone(),
            v => v.to_string(),
        };
        let mut all: BTreeMap<String, String> = self
            .params
            .iter()
            .map(|(k, v)| (k.clone(), said(v)))
            .collect();
        for (name, value) in given {
            let Some(slot) = all.get_mut(name) else {
                let known: Vec<&str> = self.params.keys().map(String::as_str).collect();
                let near = suggest::did_you_mean(name, known.iter().copied(), &[]);
                let hint = match (near, known.is_empty()) {
                    (Some(near), _) => format!(": {near}"),
                    (None, true) => ": it has none".to_owned(),
                    (None, false) => format!(": there are {}", known.join(", ")),
                };
                return Err(RecipeError::Param {
                    recipe: self.name.clone(),
                    name: name.clone(),
                    hint,
                });
            };
            slot.clone_from(value);
        }
        Ok(all)
    }

    /// Checks that all required programs are installed.
    ///
    /// # Errors
    /// Returns the first missing program and its package.
    pub fn check(&self) -> Result<(), ProgramError> {
        let path = phase::search_path(&self.paths);
        let there = |p: &str| std::env::split_paths(&path).any(|d| d.join(p).is_file());
        for (program, package) in &self.needs {
            if !there(program) {
                return Err(ProgramError::Missing {
                    recipe: self.name.clone(),
                    program: program.clone(),
                    package: package.clone(),
                });
            }
        }
        Ok(())
    }
}

/// Returns the directories that match a pattern, in which `*` matches one name. They are in reverse
/// order.
pub(super) fn expand(pattern: &str) -> Vec<PathBuf> {
    let Some((before, after)) = pattern.split_once('*') else {
        return vec![PathBuf::from(pattern)];
    };
    let entries = std::fs::read_dir(before).into_iter().flatten().flatten();
    let mut all: Vec<PathBuf> = entries
        .map(|e| Path::new(&format!("{}{after}", e.path().display())).to_owned())
        .filter(|p| p.is_dir())
        .collect();
    all.sort();
    all.reverse();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_recipe_is_valid() {
        for (name, text) in TEXTS {
            let r = Recipe::parse(name, text).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(r.name, *name);
            assert!(!r.about.is_empty(), "{name}");
            // Every variable in a script is a parameter, or a variable that Seekwell sets.
            for script in [&r.prepare, &r.run, &r.clean_up] {
                for word in script.split('$').skip(1) {
                    let name: String = word
                        .trim_start_matches('{')
                        .chars()
                        .take_while(|c| c.is_ascii_lowercase() || *c == '_')
                        .collect();
                    let own = ["dir", "device", "seed", "threads", ""];
                    let local = script.contains(&format!("{name}="))
                        || script.contains(&format!("for {name} in"));
                    assert!(
                        own.contains(&name.as_str()) || r.params.contains_key(&name) || local,
                        "{}: ${name}",
                        r.name
                    );
                }
            }
        }
        assert_eq!(recipes().len(), TEXTS.len());
    }

    #[test]
    fn invalid_recipes_and_parameters_are_rejected() {
        let text = "name = \"x\"\nrun = \"true\"\n[params]\nclients = 4\n";
        let r = Recipe::parse("x.toml", text).expect("a recipe");
        let given = |k: &str| BTreeMap::from([(k.to_owned(), "8".to_owned())]);
        assert_eq!(r.params(&given("clients")).expect("known")["clients"], "8");
        let e = r
            .params(&given("cliants"))
            .expect_err("unknown")
            .to_string();
        assert!(e.contains("did you mean `clients`"), "{e}");
        let e = Recipe::parse("x.toml", "name = \"x\"\nruns = \"true\"\n");
        let e = e.expect_err("unknown key").to_string();
        assert!(e.contains("x.toml") && e.contains("runs"), "{e}");
        assert!(Recipe::parse("x", "name = \"x\"\nrun = \"y\"\n[params]\nPATH = 1\n").is_err());
    }
}
