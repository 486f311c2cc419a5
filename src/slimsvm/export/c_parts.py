"""Pieces of C: the exponential, votes, decisions and probabilities.

``@`` stands for the beginning of names, ``#`` for the same in capitals.
"""

from __future__ import annotations

import numpy as np


def filled(text: str, name: str) -> str:
    """A piece with names in place of @ and #, except in preprocessor lines."""
    return text.replace("#_", f"{name.upper()}_").replace("@_", f"{name}_") + "\n"


def _table(first: float) -> str:
    values = [f"{float(v):.9g}" for v in np.exp(-first * np.arange(16)).astype(np.float32)]
    return ", ".join((v if "." in v or "e" in v else v + ".0") + "f" for v in values)


EXP_LIBRARY = """
static inline float @_exp(float u) { return expf(u); }
"""

# exp(-i - j/16 - r) = whole[i] part[j] (1 - r + r^2/2), r < 1/16: off by a share of 4e-5
EXP_TABLE = f"""
/* exp(u) for u <= 0, off by a share of 4e-5; zero below -16 */
static inline float @_exp(float u) {{
  static const float whole[16] = {{{_table(1.0)}}};
  static const float part[16] = {{{_table(1.0 / 16.0)}}};
  const float t = -16.0f * u;
  int i;
  float r;
  if (!(t < 256.0f)) return 0.0f;
  if (t <= 0.0f) return 1.0f;
  i = (int)t;
  r = (t - (float)i) * 0.0625f;
  return whole[i / 16] * part[i % 16] * (1.0f - r * (1.0f - 0.5f * r));
}}
"""

LARGEST = """
static inline int @_largest(const float *v) {
  int c, best = 0;
  for (c = 1; c < #_N_CLASSES; c++) if (v[c] > v[best]) best = c;
  return best;
}
"""

VOTES = """
/* a vote for each pair; of one that is exactly zero for the first of the two, or the second */
static inline void @_votes(const float *out, float *votes, int first) {
  int i, j;
  for (i = 0; i < #_N_CLASSES; i++) votes[i] = 0.0f;
  for (i = 0; i < #_N_CLASSES; i++)
    for (j = i + 1; j < #_N_CLASSES; j++, out++)
      votes[(*out > 0.0f || (first && *out == 0.0f)) ? i : j] += 1.0f;
}
"""

BY_CLASS = """
/* votes, and a share below one half of the sum of values: scikit-learn's decision_function */
static inline void @_by_class(const float *out, float *scores) {
  float sum[#_N_CLASSES];
  int i, j;
  @_votes(out, scores, 1);
  for (i = 0; i < #_N_CLASSES; i++) sum[i] = 0.0f;
  for (i = 0; i < #_N_CLASSES; i++)
    for (j = i + 1; j < #_N_CLASSES; j++, out++) {
      sum[i] += *out;
      sum[j] -= *out;
    }
  for (i = 0; i < #_N_CLASSES; i++)
    scores[i] += sum[i] / (3.0f * ((sum[i] < 0.0f ? -sum[i] : sum[i]) + 1.0f));
}
"""

DECISIONS = {
    "number": """
static inline float @_predict(const float *x) {
  float out[1];
  @_outputs(x, out);
  return out[0];
}

static inline void @_scores(const float *x, float *scores) { @_outputs(x, scores); }
""",
    "sign": """
static inline void @_scores(const float *x, float *scores) {
  @_outputs(x, scores);
  if (scores[0] <= BORDER && scores[0] >= -BORDER) scores[0] = 0.0f;
}

static inline int32_t @_predict(const float *x) {
  float scores[1];
  @_scores(x, scores);
  return scores[0] >= 0.0f ? 1 : -1;
}
""",
    "one": """
static inline void @_scores(const float *x, float *scores) { @_outputs(x, scores); }

static inline int @_place(const float *x) {
  float out[1];
  @_outputs(x, out);
  return out[0] > 0.0f;
}
""",
    "joint": """
static inline void @_scores(const float *x, float *scores) {
  float out[2];
  @_outputs(x, out);
  scores[0] = out[1] - out[0];
}

static inline int @_place(const float *x) {
  float out[2];
  @_outputs(x, out);
  return out[1] > out[0];
}
""",
    "most": LARGEST
    + """
static inline void @_scores(const float *x, float *scores) { @_outputs(x, scores); }

static inline int @_place(const float *x) {
  float out[#_N_OUTPUTS];
  @_outputs(x, out);
  return @_largest(out);
}
""",
    "pairs": LARGEST
    + VOTES
    + BY_CLASS
    + """
static inline void @_scores(const float *x, float *scores) {
SCORES
}

static inline int @_place(const float *x) {
  float out[#_N_OUTPUTS], votes[#_N_CLASSES];
  @_outputs(x, out);
  CHOSEN
}
""",
    "by pair": "  @_outputs(x, scores);",
    "by class": "  float out[#_N_OUTPUTS];\n  @_outputs(x, out);\n  @_by_class(out, scores);",
    "decides": """
static inline int @_place(const float *x) {
  float p[#_N_CLASSES];
  int c, best = 0;
  @_probabilities(x, p);
  for (c = 1; c < #_N_CLASSES; c++) if (p[c] > p[best]) best = c;
  return best;
}
""",
    "label": """
static inline int32_t @_predict(const float *x) {
  LABEL
}
""",
}

SIGMOID = """
/* 1 / (1 + exp(t)) */
static inline float @_sigmoid(float t) {
  const float e = @_exp(t < 0.0f ? t : -t);
  return (t < 0.0f ? 1.0f : e) / (1.0f + e);
}
"""

SOFTMAX = """
static inline void @_softmax(float *p) {
  float most = p[0], sum = 0.0f;
  int c;
  for (c = 1; c < #_N_CLASSES; c++) if (p[c] > most) most = p[c];
  for (c = 0; c < #_N_CLASSES; c++) sum += p[c] = @_exp(p[c] - most);
  for (c = 0; c < #_N_CLASSES; c++) p[c] /= sum;
}
"""


def _probabilities(helper: str, body: str) -> str:
    head = "static inline void @_probabilities(const float *x, float *p) {"
    return f"{helper}\n{head}\n{body}}}\n"


def _of_one_score(helper: str, body: str) -> str:
    return _probabilities(helper, f"  float score[1];\n  @_scores(x, score);\n{body}")


PROBABILITIES = {
    "logistic": SIGMOID
    + """
static inline void @_probabilities(const float *x, float *p) {
  float out[1];
  @_outputs(x, out);
  p[0] = @_sigmoid(out[0]);
  p[1] = @_sigmoid(-out[0]);
}
""",
    "softmax": SOFTMAX
    + """
static inline void @_probabilities(const float *x, float *p) {
  @_outputs(x, p);
  @_softmax(p);
}
""",
    "sigmoid": SIGMOID
    + """
static inline void @_probabilities(const float *x, float *p) {
  float score[1];
  @_scores(x, score);
  p[1] = @_sigmoid(@_prob_a[0] * score[0] + @_prob_b[0]);
  p[0] = 1.0f - p[1];
}
""",
    "sigmoids": SIGMOID
    + """
static inline void @_probabilities(const float *x, float *p) {
  float sum = 0.0f;
  int c;
  @_scores(x, p);
  for (c = 0; c < #_N_CLASSES; c++) sum += p[c] = @_sigmoid(@_prob_a[c] * p[c] + @_prob_b[c]);
  for (c = 0; c < #_N_CLASSES; c++) p[c] = sum > 0.0f ? p[c] / sum : 1.0f / #_N_CLASSES;
}
""",
    "temperature": SOFTMAX
    + """
static inline void @_probabilities(const float *x, float *p) {
  int c;
  @_scores(x, p);
  for (c = 0; c < #_N_CLASSES; c++) p[c] *= @_prob_a[0];
  @_softmax(p);
}
""",
    "temperature of two": SOFTMAX
    + """
static inline void @_probabilities(const float *x, float *p) {
  float score[1];
  @_scores(x, score);
  p[1] = @_prob_a[0] * score[0];
  p[0] = -p[1];
  @_softmax(p);
}
""",
    "pair": SIGMOID
    + """
static inline void @_probabilities(const float *x, float *p) {
  float out[1];
  @_outputs(x, out);
  p[0] = @_sigmoid(@_prob_b[0] - @_prob_a[0] * out[0]);
  if (p[0] < 1e-7f) p[0] = 1e-7f;
  if (p[0] > 1.0f - 1e-7f) p[0] = 1.0f - 1e-7f;
  p[1] = 1.0f - p[0];
}
""",
    # p minimises p'Qp with sum p = 1: (Q + 1) p = 1 but for a factor, by elimination
    "pairs": SIGMOID
    + """
static inline void @_probabilities(const float *x, float *p) {
  double q[#_N_CLASSES][#_N_CLASSES + 1], sum = 0.0;
  float out[#_N_OUTPUTS];
  const float *f = out;
  int i, j, k, at = 0;
  @_outputs(x, out);
  for (i = 0; i < #_N_CLASSES; i++)
    for (j = 0; j <= #_N_CLASSES; j++) q[i][j] = 1.0;
  for (i = 0; i < #_N_CLASSES; i++)
    for (j = i + 1; j < #_N_CLASSES; j++, at++) {
      double r = (double)@_sigmoid(@_prob_a[at] * *f++ + @_prob_b[at]);
      if (r < 1e-7) r = 1e-7;
      if (r > 1.0 - 1e-7) r = 1.0 - 1e-7;
      q[i][j] -= r * (1.0 - r);
      q[j][i] -= r * (1.0 - r);
      q[i][i] += (1.0 - r) * (1.0 - r);
      q[j][j] += r * r;
    }
  for (k = 0; k < #_N_CLASSES; k++)
    for (i = 0; i < #_N_CLASSES; i++) {
      const double t = q[i][k] / q[k][k];
      if (i != k) for (j = k; j <= #_N_CLASSES; j++) q[i][j] -= t * q[k][j];
    }
  for (i = 0; i < #_N_CLASSES; i++) {
    const double v = q[i][#_N_CLASSES] / q[i][i];
    p[i] = v > 0.0 ? (float)v : 0.0f;
    sum += (double)p[i];
  }
  for (i = 0; i < #_N_CLASSES; i++) p[i] = (float)((double)p[i] / sum);
SWAPPED}
""",
    "swapped": """  {  /* the class that is predicted changes places with the most probable one */
    float votes[#_N_CLASSES], own;
    @_by_class(out, votes);
    i = @_largest(votes);
    j = @_largest(p);
    own = p[i];
    p[i] = p[j];
    p[j] = own;
  }
""",
}
